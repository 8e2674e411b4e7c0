// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! One big job, done by the thread that asks and by helper threads of the lowest
//! priority, which disturb nobody and hold to limits across all processes.
//!
//! ```
//! # fn main() -> Result<(), ktask::Error> {
//! let mut cache = vec![0u8; 64 << 20];
//!
//! ktask::populate(&mut cache)?; // all pages are there
//!
//! // Work of your own, in chunks of at least 4096 items:
//! ktask::Job::new(4096)
//!     .run_mut(&mut cache, |_start, chunk| {
//!         chunk.fill(1);
//!         Ok::<(), std::convert::Infallible>(())
//!     })
//!     .unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! Owns the safety of what it offers: lifetimes, panics, and types that may go to other
//! threads.  How many threads work, and where, is the C library's business, which
//! `ktask_sys` compiles.
//!
//! A helper's stack has 256 KiB.  What a chunk panics with goes on in the thread that
//! asked, after all other chunks have ended and were undone.

mod error;
mod info;
mod job;
mod memory;
mod options;
mod register;

pub use error::{Error, JobError};
pub use info::{jobs, limits, trim, version, Helpers, JobInfo, Limit};
pub use job::Job;
pub use memory::{
    lock, lock_raw, populate, populate_raw, populate_read, unlock_raw, warm, LockGuard,
};
pub use options::{Options, Progress, Report};
pub use register::{Device, Register, Registration};
