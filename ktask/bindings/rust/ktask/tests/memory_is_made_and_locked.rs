// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Pages are there after the call, locks as long as their guard, and an error tells the
//! first byte that failed.

mod support;

use std::fs::File;
use std::io;

use ktask::{lock, populate, populate_raw, populate_read, warm, Error};
use support::{status_kib, Mapping, PAGE};

const EFAULT: i32 = 14;
const ENOMEM: i32 = 12;
const EBADF: i32 = 9;

#[test]
fn all_pages_of_a_slice_are_made() {
    let mut memory = Mapping::new(32 << 20);

    assert_eq!(memory.pages_present(), 0);
    let report = populate(&mut memory).unwrap();
    assert_eq!(report.units, 32 << 20);
    assert_eq!(memory.pages_present(), (32 << 20) / PAGE);
    assert!(memory.iter().all(|&byte| byte == 0));
}

#[test]
fn also_those_that_it_has_a_byte_of() {
    let mut memory = Mapping::new(4 * PAGE);

    populate(&mut memory[PAGE - 1..2 * PAGE + 1]).unwrap();
    // With huge pages there may be more.
    assert!(memory.pages_present() >= 3);
}

#[test]
fn what_is_there_stays() {
    let mut items: Vec<u64> = (0..1 << 20).collect();

    populate(&mut items).unwrap();
    populate_read(&items).unwrap();
    assert!(items.iter().enumerate().all(|(i, &item)| item == i as u64));
}

#[test]
fn nothing_is_made_of_nothing() {
    assert_eq!(populate(&mut [] as &mut [u8]).unwrap().units, 0);
    assert_eq!(populate(&mut [(); 1000]).unwrap().units, 0);
    assert_eq!(lock(&mut [] as &mut [u8]).unwrap().len(), 0);
}

#[test]
fn the_first_byte_that_failed_is_told() {
    let mut memory = Mapping::new(8 << 20);

    memory.forbid_from(5 << 20);
    let error = populate(&mut memory[100..]).unwrap_err();
    assert_eq!(
        error,
        Error::System {
            operation: "populate",
            errno: EFAULT,
            offset: Some((5 << 20) - 100),
        }
    );
    assert_eq!(
        error.to_string(),
        "populate at byte 5242780: Bad address (os error 14)"
    );
    assert_eq!(
        io::Error::from(error.clone()).kind(),
        io::Error::from_raw_os_error(EFAULT).kind()
    );
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    // The kernel maps nothing there.
    let error = unsafe { populate_raw(PAGE as *mut u8, 100) }.unwrap_err();

    assert_eq!((error.errno(), error.offset()), (ENOMEM, Some(0)));
}

#[test]
fn locks_end_with_their_guard() {
    let mut memory = Mapping::new(64 * PAGE);
    let before = status_kib("VmLck");

    match lock(&mut memory) {
        Ok(mut guard) => {
            assert_eq!(status_kib("VmLck"), before + 64 * PAGE / 1024);
            guard[0] = 1;
            assert_eq!(guard.len(), 64 * PAGE);
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    }
    assert_eq!(status_kib("VmLck"), before);
    assert_eq!(memory[0], 1);
}

#[test]
fn files_are_warmed_or_refused() {
    let path = std::env::current_exe().unwrap();
    let file = File::open(&path).unwrap();
    let size = file.metadata().unwrap().len();

    assert_eq!(warm(&file, 0, None).unwrap().units, size);
    assert_eq!(warm(&file, size - 10, Some(100)).unwrap().units, 10);
    let write_only = File::create(std::env::temp_dir().join("ktask-warm")).unwrap();
    io::Write::write_all(&mut &write_only, b"text").unwrap();
    let error = warm(&write_only, 0, None).unwrap_err();
    assert_eq!((error.errno(), error.offset()), (EBADF, Some(0)));
}

#[test]
fn limits_and_jobs_are_told() {
    let limits = ktask::limits();
    let (_, helpers) = ktask::jobs();

    assert!(limits
        .iter()
        .any(|limit| limit.name == "cpus" && limit.threads > 0));
    assert!(limits.iter().all(|limit| !limit.why.is_empty()));
    assert!(helpers.used <= helpers.limit);
    assert_eq!(ktask::version().split('.').count(), 3);
}
