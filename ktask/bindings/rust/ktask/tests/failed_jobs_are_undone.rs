// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Exactly the chunks that succeeded are, whether one returned an error or panicked;
//! the error and the panic reach the caller.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use ktask::{Job, JobError};

const UNITS: usize = 1 << 16;

fn undo(_: usize, chunk: &mut [u8]) {
    for item in chunk {
        *item -= 1;
    }
}

/// The chunk that has `bad` fails, as `fail` does it.
fn run(
    items: &mut [u8],
    bad: usize,
    fail: impl Fn() -> Result<(), String> + Sync,
) -> Result<ktask::Report, JobError<String>> {
    Job::new(64).run_mut_with_undo(
        items,
        |start, chunk| {
            if (start..start + chunk.len()).contains(&bad) {
                return fail();
            }
            for item in chunk {
                *item += 1;
            }
            Ok(())
        },
        undo,
    )
}

#[test]
fn after_an_error_at_any_place() {
    for bad in [0, 1, UNITS / 3, UNITS - 1] {
        let mut items = vec![0u8; UNITS];
        let failed = run(&mut items, bad, || Err(format!("bad {bad}")));

        match failed {
            Err(JobError::Chunk { start, error }) => {
                assert!(start <= bad);
                assert_eq!(error, format!("bad {bad}"));
            }
            other => panic!("{other:?}"),
        }
        assert!(items.iter().all(|&item| item == 0), "bad {bad}");
    }
}

#[test]
fn after_a_panic_at_any_place() {
    for bad in [0, 1, UNITS / 3, UNITS - 1] {
        let mut items = vec![0u8; UNITS];
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _ = run(&mut items, bad, || panic!("bad {bad}"));
        }));
        let said = panicked.unwrap_err();

        assert_eq!(said.downcast_ref::<String>(), Some(&format!("bad {bad}")));
        assert!(items.iter().all(|&item| item == 0), "bad {bad}");
    }
}

#[test]
fn and_the_error_is_that_of_the_lowest_chunk() {
    let failed = Mutex::new(Vec::new());
    let error = Job::new(1)
        .run(UNITS, |range| {
            failed.lock().unwrap().push(range.start);
            Err::<(), usize>(range.start)
        })
        .unwrap_err();
    let least = failed.into_inner().unwrap().into_iter().min().unwrap();

    assert_eq!(
        error,
        JobError::Chunk {
            start: least,
            error: least
        }
    );
}

#[test]
fn also_where_undoing_panics() {
    let undone = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _ = Job::new(64).run_with_undo(
            UNITS,
            |range| {
                if range.end == UNITS {
                    return Err(());
                }
                done.fetch_add(range.len(), Ordering::Relaxed);
                Ok(())
            },
            |range| {
                undone.fetch_add(range.len(), Ordering::Relaxed);
                panic!("undo");
            },
        );
    }));

    let done = done.into_inner();
    assert_eq!(undone.into_inner(), done);
    match panicked {
        Ok(()) => assert_eq!(done, 0, "one chunk was all"),
        Err(panic) => assert_eq!(panic.downcast_ref::<&str>(), Some(&"undo")),
    }
}

#[test]
fn errors_read_well() {
    let error = Job::new(1).run(4, |_| Err::<(), &str>("no")).unwrap_err();

    assert_eq!(error.to_string(), "chunk at 0: no");
}

#[test]
fn a_wrong_align_is_refused_before_anything_runs() {
    let error = Job::new(1)
        .align(3)
        .run(4, |_| -> Result<(), ()> { panic!("called") });

    match error {
        Err(JobError::Ended(error)) => assert_eq!(error.errno(), 22),
        other => panic!("{other:?}"),
    }
}
