// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! In order, of present pages, until the guard is dropped; what fails is taken back, the
//! last piece first.

mod support;

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

use ktask::{Device, Error, JobError, Options, Register};
use support::Mapping;

const MIB: usize = 1 << 20;

/// Notes what is registered, and fails where it shall.
struct Notes<'a> {
    pieces: &'a RefCell<Vec<(usize, usize)>>,
    fail_at: Option<usize>,
    panics: bool,
}

impl<'a> Notes<'a> {
    fn new(pieces: &'a RefCell<Vec<(usize, usize)>>) -> Self {
        Notes {
            pieces,
            fail_at: None,
            panics: false,
        }
    }
}

impl Device for Notes<'_> {
    type Error = String;

    fn register(&mut self, start: *mut u8, len: usize) -> Result<(), String> {
        if self.fail_at == Some(self.pieces.borrow().len()) {
            assert!(!self.panics, "a panic");
            return Err("full".into());
        }
        self.pieces.borrow_mut().push((start as usize, len));
        Ok(())
    }

    fn unregister(&mut self, start: *mut u8, len: usize) -> Result<(), String> {
        assert_eq!(self.pieces.borrow_mut().pop(), Some((start as usize, len)));
        Ok(())
    }
}

#[test]
fn as_long_as_the_guard_lives() {
    let mut memory = Mapping::new(16 * MIB);
    let addr = memory.addr() as usize;
    let pieces = RefCell::default();
    let mut guard = Register::new()
        .max_piece(4 * MIB)
        .register(&mut memory, Notes::new(&pieces))
        .unwrap();
    let noted = pieces.borrow().clone();
    let told: Vec<_> = guard
        .pieces()
        .iter()
        .map(|&(at, len)| (addr + at, len))
        .collect();

    assert!(noted.len() >= 4);
    assert_eq!(noted, told);
    assert!(
        noted.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0),
        "in order"
    );
    assert_eq!(guard.report().units, 16 << 20);
    assert_eq!(guard.report().chunks, noted.len() as u64);
    assert!(guard.longest_call() > Duration::ZERO);
    guard[0] = 1;
    drop(guard);
    assert!(pieces.borrow().is_empty());
    assert_eq!(memory[0], 1);
    assert_eq!(memory.pages_present(), 16 * MIB / support::PAGE);
}

#[test]
fn an_error_at_any_piece_takes_all_back() {
    for fail_at in 0..4 {
        let mut memory = Mapping::new(16 * MIB);
        let pieces = RefCell::default();
        let device = Notes {
            fail_at: Some(fail_at),
            ..Notes::new(&pieces)
        };
        let error = Register::new()
            .unit(4 * MIB)
            .max_piece(4 * MIB)
            .register(&mut memory, device)
            .err()
            .unwrap();

        assert_eq!(
            error,
            JobError::Chunk {
                start: fail_at * 4 * MIB,
                error: "full".into()
            }
        );
        assert!(pieces.borrow().is_empty());
    }
}

#[test]
fn so_does_a_panic() {
    let mut memory = Mapping::new(16 * MIB);
    let pieces = RefCell::default();
    let device = Notes {
        fail_at: Some(2),
        panics: true,
        ..Notes::new(&pieces)
    };
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _ = Register::new()
            .max_piece(4 * MIB)
            .register(&mut memory, device);
    }));

    assert_eq!(
        panicked.unwrap_err().downcast_ref::<&str>(),
        Some(&"a panic")
    );
    assert!(pieces.borrow().is_empty());
}

#[test]
fn and_a_cancel() {
    let mut memory = Mapping::new(16 * MIB);
    let pieces = RefCell::default();
    let mut stop = |_| ControlFlow::Break(());
    let options = Options::new().progress(Duration::ZERO, &mut stop);
    let error = Register::new()
        .max_piece(MIB)
        .options(options)
        .register(&mut memory, Notes::new(&pieces))
        .err()
        .unwrap();

    assert_eq!(error, JobError::Ended(Error::Cancelled));
    assert!(pieces.borrow().is_empty());
}

#[test]
fn nothing_is_registered_of_nothing() {
    let pieces = RefCell::default();
    let guard = Register::new()
        .register(&mut [] as &mut [u8], Notes::new(&pieces))
        .unwrap();

    assert!(guard.pieces().is_empty() && guard.is_empty());
    assert_eq!(guard.unregister(), Ok(()));
    assert!(pieces.borrow().is_empty());
}

#[test]
fn a_guard_may_be_forgotten_in_a_panic() {
    struct Stubborn;
    impl Device for Stubborn {
        type Error = ();
        fn register(&mut self, _: *mut u8, _: usize) -> Result<(), ()> {
            Ok(())
        }
        fn unregister(&mut self, _: *mut u8, _: usize) -> Result<(), ()> {
            panic!("unregister");
        }
    }
    let mut memory = Mapping::new(MIB);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _guard = Register::new().register(&mut memory, Stubborn).unwrap();
        panic!("the program's");
    }));

    assert_eq!(
        panicked.unwrap_err().downcast_ref::<&str>(),
        Some(&"the program's")
    );
}
