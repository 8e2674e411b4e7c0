// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! What the library tells of this machine.

use std::ffi::{c_char, c_uint, CStr};
use std::mem;
use std::time::Duration;

use ktask_sys::{ktask_job_info, ktask_limit, ktask_permits_info};

/// One thing that limits the threads of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub name: String,
    /// the most that it allows, the caller included
    pub threads: u32,
    /// for people
    pub why: String,
}

/// A job that runs on this machine now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInfo {
    pub pid: i32,
    pub uid: u32,
    pub name: String,
    pub helpers: u32,
    pub wanted: u32,
    pub units_done: u64,
    pub units_total: u64,
    pub elapsed: Duration,
    /// an estimate; `None` where there is none
    pub remaining: Option<Duration>,
}

/// Helpers of this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Helpers {
    pub used: u32,
    pub limit: u32,
    /// false: this process sees only its own
    pub shared: bool,
    /// there may be more jobs than are told
    pub cut: bool,
}

const NR_LIMITS: usize = 64;
const NR_JOBS: usize = 1024;

/// Of an array that need not end with a 0.
fn text_of(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .take_while(|&&c| c != 0)
        .map(|&c| c as u8)
        .collect();

    String::from_utf8_lossy(&bytes).into_owned()
}

/// What would limit a job that began now, and why; the least one holds.
pub fn limits() -> Vec<Limit> {
    // SAFETY: integers, and pointers that may be null.
    let mut limits: [ktask_limit; NR_LIMITS] = unsafe { mem::zeroed() };
    limits[0].struct_size = mem::size_of::<ktask_limit>();
    // SAFETY: the array has so many entries.
    let nr = unsafe { ktask_sys::ktask_limits(limits.as_mut_ptr(), NR_LIMITS as c_uint) };

    limits
        .iter()
        .take(nr as usize)
        .map(|limit| Limit {
            // SAFETY: of an entry that was filled it is a static string.
            name: unsafe { CStr::from_ptr(limit.name) }
                .to_string_lossy()
                .into_owned(),
            threads: limit.threads,
            why: text_of(&limit.why),
        })
        .collect()
}

/// Jobs of all processes that use more than one thread now, and this user's helpers.
pub fn jobs() -> (Vec<JobInfo>, Helpers) {
    let mut jobs = vec![ktask_job_info::default(); NR_JOBS];
    let mut permits = ktask_permits_info {
        struct_size: mem::size_of::<ktask_permits_info>(),
        ..Default::default()
    };
    jobs[0].struct_size = mem::size_of::<ktask_job_info>();
    // SAFETY: the array has so many entries.
    let nr = unsafe { ktask_sys::ktask_jobs(jobs.as_mut_ptr(), NR_JOBS as c_uint, &mut permits) };

    jobs.truncate(nr as usize);
    let helpers = Helpers {
        used: permits.used,
        limit: permits.limit,
        shared: permits.shared != 0,
        cut: permits.cut != 0,
    };
    (jobs.iter().map(JobInfo::from).collect(), helpers)
}

impl From<&ktask_job_info> for JobInfo {
    fn from(job: &ktask_job_info) -> Self {
        JobInfo {
            pid: job.pid,
            uid: job.uid,
            name: text_of(&job.name),
            helpers: job.helpers,
            wanted: job.wanted,
            units_done: job.units_done,
            units_total: job.units_total,
            elapsed: Duration::from_nanos(job.elapsed_ns),
            remaining: (job.remaining_ns != 0).then(|| Duration::from_nanos(job.remaining_ns)),
        }
    }
}

/// End idle helper threads, for `unshare(2)` and its like; how many ended.
pub fn trim() -> u32 {
    // SAFETY: may be called at any time.
    unsafe { ktask_sys::ktask_trim() }
}

/// Of the library, "MAJOR.MINOR.PATCH".
pub fn version() -> &'static str {
    // SAFETY: a static string.
    unsafe { CStr::from_ptr(ktask_sys::ktask_version()) }
        .to_str()
        .unwrap_or("unknown")
}
