// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! By a deadline, or by a progress function that says so or panics.

mod support;

use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ktask::{Error, Job, JobError, Options};
use support::Mapping;

const AT_ONCE: Duration = Duration::ZERO;

#[test]
fn progress_adds_up() {
    let mut memory = Mapping::new(64 << 20);
    let mut last = (0, 0);

    Options::new()
        .progress(AT_ONCE, &mut |progress| {
            assert!(progress.units_done >= last.0);
            last = (progress.units_done, progress.units_total);
            ControlFlow::Continue(())
        })
        .populate(&mut memory)
        .unwrap();
    assert_eq!(last, (64 << 20, 64 << 20));
}

#[test]
fn progress_cancels_a_job_which_is_undone() {
    let done = AtomicUsize::new(0);
    let error = Job::new(1)
        .options(Options::new().progress(AT_ONCE, &mut |_| ControlFlow::Break(())))
        .run_with_undo(
            1 << 20,
            |range| {
                done.fetch_add(range.len(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(100));
                Ok::<(), ()>(())
            },
            |range| {
                done.fetch_sub(range.len(), Ordering::Relaxed);
            },
        )
        .unwrap_err();

    assert_eq!(error, JobError::Ended(Error::Cancelled));
    assert_eq!(done.into_inner(), 0);
}

#[test]
fn progress_that_panics_cancels_and_goes_on() {
    let mut memory = Mapping::new(64 << 20);
    let mut calls = 0;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _ = Options::new()
            .progress(AT_ONCE, &mut |_| {
                calls += 1;
                panic!("progress");
            })
            .populate(&mut memory);
    }));

    assert_eq!(
        panicked.unwrap_err().downcast_ref::<&str>(),
        Some(&"progress")
    );
    assert_eq!(calls, 1);
}

#[test]
fn a_deadline_passes() {
    let error = Job::new(1)
        .options(Options::new().deadline(Duration::from_nanos(1)))
        .run(1 << 20, |_| {
            std::thread::sleep(Duration::from_millis(1));
            Ok::<(), ()>(())
        })
        .unwrap_err();

    assert_eq!(error, JobError::Ended(Error::DeadlinePassed));
}

#[test]
fn a_deadline_of_centuries_does_not() {
    let mut memory = Mapping::new(1 << 20);

    Options::new()
        .deadline(Duration::MAX)
        .populate(&mut memory)
        .unwrap();
}
