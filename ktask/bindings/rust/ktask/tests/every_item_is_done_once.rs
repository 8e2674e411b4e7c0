// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Whatever the size of a slice and of its items, and whatever the job is nested in.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use ktask::{Job, Options};

fn count(job: Job<'_>, items: &mut [u32]) {
    job.run_mut(items, |start, chunk| {
        for (i, item) in chunk.iter_mut().enumerate() {
            *item += (start + i) as u32 + 1;
        }
        Ok::<(), Infallible>(())
    })
    .unwrap();
}

fn is_counted(items: &[u32]) -> bool {
    items
        .iter()
        .enumerate()
        .all(|(i, &item)| item == i as u32 + 1)
}

#[test]
fn of_slices_of_any_length() {
    for len in [0, 1, 2, 1023, 1024, 4097, 1 << 20] {
        let mut items = vec![0; len];

        count(Job::new(64), &mut items);
        assert!(is_counted(&items), "{len} items");
    }
}

#[test]
fn with_every_option() {
    let mut items = vec![0; 1 << 20];
    let options = Options::new().fixed_threads(2);

    count(
        Job::new(0)
            .options(options)
            .align(256)
            .blocks()
            .name("a name\0that ends"),
        &mut items,
    );
    assert!(is_counted(&items));
}

#[test]
fn chunks_keep_to_their_sizes() {
    Job::new(1000)
        .align(256)
        .run(1 << 20, |range| {
            assert!(range.len() >= 1000 || range.end == 1 << 20);
            assert_eq!(range.start % 256, 0);
            Ok::<(), Infallible>(())
        })
        .unwrap();
}

#[test]
fn of_items_without_a_size() {
    let seen = AtomicUsize::new(0);
    let report = Job::new(1024)
        .run_mut(&mut [(); 1 << 20], |_, chunk| {
            seen.fetch_add(chunk.len(), Ordering::Relaxed);
            Ok::<(), Infallible>(())
        })
        .unwrap();

    assert_eq!(seen.into_inner(), 1 << 20);
    assert_eq!(report.units, 1 << 20);
}

#[test]
fn of_more_items_without_a_size_than_there_are_addresses() {
    let most = usize::MAX;
    let mut items = vec![(); most];
    let ran = AtomicUsize::new(0);
    let _ = Job::new(most).run_mut(&mut items, |_, chunk| {
        ran.fetch_add(chunk.len(), Ordering::Relaxed);
        Ok::<(), Infallible>(())
    });

    // Done once, or refused before anything ran.
    assert!([0, most].contains(&ran.into_inner()));
}

#[test]
fn of_an_empty_slice_nothing_is_called() {
    let report = Job::new(1)
        .run_mut(&mut [] as &mut [u8], |_, _| -> Result<(), ()> {
            panic!("called")
        })
        .unwrap();

    assert_eq!(report.units, 0);
}

#[test]
fn by_a_job_in_a_chunk() {
    let mut rows = vec![vec![0; 1 << 14]; 64];

    Job::new(1)
        .run_mut(&mut rows, |_, chunk| {
            for row in chunk {
                count(Job::new(256), row);
            }
            Ok::<(), Infallible>(())
        })
        .unwrap();
    assert!(rows.iter().all(|row| is_counted(row)));
}

#[test]
fn by_many_threads_at_once() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut items = vec![0; 1 << 18];

                count(Job::new(256), &mut items);
                assert!(is_counted(&items));
            });
        }
    });
}
