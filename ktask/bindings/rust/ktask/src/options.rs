// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! What a caller may choose, and what he is told.

use std::any::Any;
use std::ffi::{c_int, c_uint, c_void};
use std::mem;
use std::ops::ControlFlow;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;
use std::time::Duration;

use ktask_sys::{ktask_opts, ktask_progress, ktask_result, KTASK_FIXED};

use crate::Error;

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub units_done: u64,
    pub units_total: u64,
    pub elapsed: Duration,
    /// at the present rate; `None` where that is not known
    pub remaining: Option<Duration>,
    /// that work now, the caller included
    pub threads: u32,
}

type ProgressFn<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// What the caller of an operation or a job may choose; the default is best for most.
#[derive(Default)]
pub struct Options<'a> {
    pub(crate) threads: u32,
    pub(crate) fixed: bool,
    pub(crate) deadline: Option<Duration>,
    pub(crate) progress: Option<ProgressFn<'a>>,
    pub(crate) every: Duration,
}

impl<'a> Options<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    /// The most threads, the caller included; 0: as many as pay.
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// So many threads from the beginning to the end, if policy allows.
    pub fn fixed_threads(mut self, threads: u32) -> Self {
        self.fixed = true;
        self.threads(threads)
    }

    /// From the beginning of the call.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Call `func` at most that often, and once in the end; it runs in the thread that
    /// asked, and ends the work by `ControlFlow::Break`.
    pub fn progress(
        mut self,
        every: Duration,
        func: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Self {
        self.progress = Some(func);
        self.every = every;
        self
    }

    pub(crate) fn deadline_ns(&self) -> u64 {
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.deadline.map_or(0, nanos)
    }

    pub(crate) fn progress_ms(&self) -> c_uint {
        c_uint::try_from(self.every.as_millis()).unwrap_or(c_uint::MAX)
    }

    pub(crate) fn flags(&self) -> c_uint {
        if self.fixed {
            KTASK_FIXED
        } else {
            0
        }
    }

    pub(crate) fn take_watch(&mut self) -> Option<Watch<'a>> {
        self.progress.take().map(|func| Watch { func, panic: None })
    }
}

/// A progress function while the library calls it.
pub(crate) struct Watch<'a> {
    func: ProgressFn<'a>,
    pub(crate) panic: Option<Box<dyn Any + Send>>,
}

/// The `progress_func` whose argument is a `Watch`.
pub(crate) unsafe extern "C" fn report_progress(
    progress: *const ktask_progress,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the library passes what it was given, in the thread that gave it.
    let (progress, watch) = unsafe { (&*progress, &mut *arg.cast::<Watch>()) };

    if watch.panic.is_some() {
        return 1;
    }
    match catch_unwind(AssertUnwindSafe(|| (watch.func)(progress.into()))) {
        Ok(ControlFlow::Continue(())) => 0,
        Ok(ControlFlow::Break(())) => 1,
        Err(panic) => {
            watch.panic = Some(panic);
            1
        }
    }
}

impl From<&ktask_progress> for Progress {
    fn from(progress: &ktask_progress) -> Self {
        Progress {
            units_done: progress.units_done,
            units_total: progress.units_total,
            elapsed: Duration::from_nanos(progress.elapsed_ns),
            remaining: (progress.remaining_ns != 0)
                .then(|| Duration::from_nanos(progress.remaining_ns)),
            threads: progress.threads,
        }
    }
}

/// What a call did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// bytes of an operation, units of a job
    pub units: u64,
    pub chunks: u64,
    /// that did at least one chunk
    pub threads: u32,
    pub wall: Duration,
    /// of all threads
    pub cpu: Duration,
}

pub(crate) fn empty_result() -> ktask_result {
    // SAFETY: it has integers and pointers only.
    let mut result: ktask_result = unsafe { mem::zeroed() };

    result.struct_size = mem::size_of::<ktask_result>();
    result.fail_pos = ptr::null_mut();
    result
}

impl From<&ktask_result> for Report {
    fn from(result: &ktask_result) -> Self {
        Report {
            units: result.units,
            chunks: result.chunks,
            threads: result.threads,
            wall: Duration::from_nanos(result.wall_ns),
            cpu: Duration::from_nanos(result.cpu_ns),
        }
    }
}

/// Let `call` do an operation with options.  `begin` is where offsets of errors count
/// from.
pub(crate) fn with_opts(
    operation: &'static str,
    mut options: Options<'_>,
    begin: usize,
    call: impl FnOnce(*const ktask_opts) -> c_int,
) -> Result<Report, Error> {
    let mut result = empty_result();
    let mut watch = options.take_watch();
    let opts = ktask_opts {
        struct_size: mem::size_of::<ktask_opts>(),
        max_threads: options.threads,
        progress_ms: options.progress_ms(),
        deadline_ns: options.deadline_ns(),
        progress_func: watch.is_some().then_some(report_progress as _),
        progress_arg: watch
            .as_mut()
            .map_or(ptr::null_mut(), |w| ptr::from_mut(w).cast()),
        result: &mut result,
        flags: options.flags(),
        chunk_us: 0,
        reserved: [0; 3],
    };
    let code = call(&opts);

    if let Some(panic) = watch.and_then(|w| w.panic) {
        resume_unwind(panic);
    }
    if code == 0 {
        return Ok(Report::from(&result));
    }
    let failed = result.fail_pos as usize;
    let offset = (failed != 0).then(|| failed.saturating_sub(begin));
    Err(Error::new(operation, code, offset))
}
