// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! What a virtual machine monitor does before it starts a guest: maps the guest's
//! memory with the crate `vm-memory`, and makes all of its pages, so that the guest
//! never waits for one.
//!
//!     cargo run --example guest_memory [MIB [THREADS [--lock]]]
//!
//! THREADS: the most that make pages; 0: as many as pay.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use ktask::Options;
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion};

/// Below 4 GiB devices have the last part.
const GAP: u64 = 3 << 30;
const ABOVE: u64 = 4 << 30;

fn layout(bytes: u64) -> Vec<(GuestAddress, usize)> {
    let below = bytes.min(GAP);
    let mut ranges = vec![(GuestAddress(0), below as usize)];

    if bytes > below {
        ranges.push((GuestAddress(ABOVE), (bytes - below) as usize));
    }
    ranges
}

fn prepare(memory: &GuestMemoryMmap, threads: u32, lock: bool) -> Result<u64, ktask::Error> {
    let mut made = 0;

    for region in memory.iter() {
        let mut show = |progress: ktask::Progress| {
            let percent = 100 * progress.units_done / progress.units_total.max(1);
            eprint!("\r{:#x}: {percent} %", region.start_addr().0);
            let _ = io::stderr().flush();
            ControlFlow::Continue(())
        };
        let options = Options::new()
            .threads(threads)
            .progress(Duration::from_millis(100), &mut show);
        // SAFETY: the region stays mapped as long as `memory` lives.
        let report = unsafe {
            if lock {
                options.lock_raw(region.as_ptr(), region.len() as usize)?
            } else {
                options.populate_raw(region.as_ptr(), region.len() as usize)?
            }
        };
        eprintln!(
            ", {} threads, {:.3} s",
            report.threads,
            report.wall.as_secs_f64()
        );
        made += report.units;
    }
    Ok(made)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let lock = arguments.iter().any(|word| word == "--lock");
    let mut numbers = arguments.iter().filter(|word| *word != "--lock");
    let mib: u64 = numbers.next().map_or(Ok(64), |text| text.parse())?;
    let threads: u32 = numbers.next().map_or(Ok(0), |text| text.parse())?;
    let memory = GuestMemoryMmap::<()>::from_ranges(&layout(mib << 20))?;
    let made = prepare(&memory, threads, lock)?;

    // The guest's memory is as it was: zeroes, and now present.
    assert_eq!(memory.read_obj::<u64>(GuestAddress(0x1000))?, 0);
    assert_eq!(made, mib << 20);
    println!("{mib} MiB of guest memory are there");
    Ok(())
}
