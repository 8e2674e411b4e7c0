// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Jobs: work of one's own, in chunks.
//!
//! Positions are indices, not addresses: items of no size are positions as well.

use std::any::Any;
use std::ffi::{c_int, c_void, CString};
use std::mem;
use std::ops::Range;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;
use std::slice;
use std::sync::Mutex;

use ktask_sys::{ktask_ctl, KTASK_BLOCKS};

use crate::options::{empty_result, report_progress};
use crate::{Error, JobError, Options, Report};

/// How to do a job; [`run`](Job::run) does it.
pub struct Job<'a> {
    options: Options<'a>,
    min_chunk: usize,
    align: usize,
    blocks: bool,
    name: Option<CString>,
}

impl<'a> Job<'a> {
    /// Chunks have at least `min_chunk` units: so many that a chunk is worth a
    /// microsecond or more.  0 counts as 1.
    pub fn new(min_chunk: usize) -> Self {
        Job {
            options: Options::new(),
            min_chunk: min_chunk.max(1),
            align: 0,
            blocks: false,
            name: None,
        }
    }

    pub fn options(mut self, options: Options<'a>) -> Self {
        self.options = options;
        self
    }

    /// Edges between chunks fall on multiples of `align`, a power of two.
    pub fn align(mut self, align: usize) -> Self {
        self.align = align;
        self
    }

    /// Chunks wait in the kernel, for devices or other threads.
    pub fn blocks(mut self) -> Self {
        self.blocks = true;
        self
    }

    /// What `ktask top` calls it; 15 characters are kept, up to the first 0.
    pub fn name(mut self, name: &str) -> Self {
        self.name = CString::new(name.split('\0').next().unwrap_or_default()).ok();
        self
    }

    /// Do `units` units of work: `work` is called for ranges that together cover
    /// `0..units`, each position once, by several threads at once.
    pub fn run<E, F>(self, units: usize, work: F) -> Result<Report, JobError<E>>
    where
        F: Fn(Range<usize>) -> Result<(), E> + Sync,
        E: Send,
    {
        self.run_shared(units, &Shared::new(&work, &|_| {}, false))
    }

    /// As [`run`](Job::run).  If the job fails, `undo` is called for ranges that
    /// together cover exactly the chunks that succeeded, by the thread that asked, after
    /// all chunks have ended.  A chunk that fails or panics cleans up after itself.
    pub fn run_with_undo<E, F, U>(
        self,
        units: usize,
        work: F,
        undo: U,
    ) -> Result<Report, JobError<E>>
    where
        F: Fn(Range<usize>) -> Result<(), E> + Sync,
        U: Fn(Range<usize>),
        E: Send,
    {
        self.run_shared(units, &Shared::new(&work, &undo, true))
    }

    /// Do a job over a slice: `work` has the index of its chunk's first item, and the
    /// chunk.
    pub fn run_mut<T, E, F>(self, items: &mut [T], work: F) -> Result<Report, JobError<E>>
    where
        T: Send,
        F: Fn(usize, &mut [T]) -> Result<(), E> + Sync,
        E: Send,
    {
        let parts = Parts::new(items);

        // SAFETY: no two ranges of a job meet, and the slice is borrowed meanwhile.
        self.run(items.len(), |range| {
            work(range.start, unsafe { parts.part(range) })
        })
    }

    /// As [`run_mut`](Job::run_mut) and [`run_with_undo`](Job::run_with_undo).
    pub fn run_mut_with_undo<T, E, F, U>(
        self,
        items: &mut [T],
        work: F,
        undo: U,
    ) -> Result<Report, JobError<E>>
    where
        T: Send,
        F: Fn(usize, &mut [T]) -> Result<(), E> + Sync,
        U: Fn(usize, &mut [T]),
        E: Send,
    {
        let parts = Parts::new(items);

        // SAFETY: as above; undo is called when all chunks have ended.
        self.run_with_undo(
            items.len(),
            |range| work(range.start, unsafe { parts.part(range) }),
            |range| undo(range.start, unsafe { parts.part(range) }),
        )
    }

    fn run_shared<E, F, U>(
        mut self,
        units: usize,
        shared: &Shared<'_, E, F, U>,
    ) -> Result<Report, JobError<E>>
    where
        F: Fn(Range<usize>) -> Result<(), E> + Sync,
        U: Fn(Range<usize>),
        E: Send,
    {
        let mut result = empty_result();
        let mut watch = self.options.take_watch();
        let mut ctl = self.control::<E, F, U>(shared);

        ctl.result = &mut result;
        if let Some(watch) = &mut watch {
            ctl.progress_func = Some(report_progress);
            ctl.progress_arg = ptr::from_mut(watch).cast();
        }
        // SAFETY: all that these point to lives until the call returns.
        let code = unsafe { ktask_sys::ktask_run(ptr::null_mut(), units, &ctl) };

        if let Some(panic) = shared.panic().take().or(watch.and_then(|w| w.panic)) {
            resume_unwind(panic);
        }
        match (code, shared.failed().take()) {
            (0, _) => Ok(Report::from(&result)),
            (CHUNK_FAILED, Some((start, error))) => Err(JobError::Chunk { start, error }),
            _ => Err(JobError::Ended(Error::new("job", code, None))),
        }
    }

    fn control<E, F, U>(&self, shared: &Shared<'_, E, F, U>) -> ktask_ctl
    where
        F: Fn(Range<usize>) -> Result<(), E> + Sync,
        U: Fn(Range<usize>),
        E: Send,
    {
        ktask_ctl {
            struct_size: mem::size_of::<ktask_ctl>(),
            thread_func: Some(work_on_chunk::<E, F, U>),
            func_arg: ptr::from_ref(shared).cast_mut().cast(),
            min_chunk_size: self.min_chunk,
            undo_func: shared.has_undo.then_some(undo_chunks::<E, F, U> as _),
            iter_func: None,
            align: self.align,
            max_threads: self.options.threads,
            flags: self.options.flags() | if self.blocks { KTASK_BLOCKS } else { 0 },
            deadline_ns: self.options.deadline_ns(),
            progress_func: None,
            progress_arg: ptr::null_mut(),
            progress_ms: self.options.progress_ms(),
            chunk_us: 0,
            cpus: ptr::null(),
            cpus_size: 0,
            result: ptr::null_mut(),
            name: self.name.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            reserved: [0; 4],
        }
    }
}

/// A slice of which several threads have distinct parts.
struct Parts<T>(*mut T);

// SAFETY: each part is for one thread at a time, and its items may go there.
unsafe impl<T: Send> Sync for Parts<T> {}

impl<T> Parts<T> {
    fn new(items: &mut [T]) -> Self {
        Parts(items.as_mut_ptr())
    }

    /// SAFETY: the range is in the slice, and meets no other that is in use.
    #[allow(clippy::mut_from_ref)]
    unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        // SAFETY: the caller's.
        unsafe { slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

type Panic = Box<dyn Any + Send>;

/// What the threads of a job share.
struct Shared<'a, E, F, U> {
    work: &'a F,
    undo: &'a U,
    has_undo: bool,
    /// the first that anything panicked with
    panic: Mutex<Option<Panic>>,
    /// of the failed chunks the one that begins lowest
    failed: Mutex<Option<(usize, E)>>,
}

impl<'a, E, F, U> Shared<'a, E, F, U> {
    fn new(work: &'a F, undo: &'a U, has_undo: bool) -> Self {
        Shared {
            work,
            undo,
            has_undo,
            panic: Mutex::new(None),
            failed: Mutex::new(None),
        }
    }

    fn panic(&self) -> std::sync::MutexGuard<'_, Option<Panic>> {
        self.panic
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn failed(&self) -> std::sync::MutexGuard<'_, Option<(usize, E)>> {
        self.failed
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn keep_panic(&self, panic: Panic) {
        self.panic().get_or_insert(panic);
    }

    fn keep_failure(&self, start: usize, error: E) {
        let mut failed = self.failed();

        if failed.as_ref().is_none_or(|(other, _)| start < *other) {
            *failed = Some((start, error));
        }
    }
}

// What a chunk says that has failed.  The library's own codes are negative.
const CHUNK_FAILED: c_int = 1;

unsafe extern "C" fn work_on_chunk<E, F, U>(
    start: *mut c_void,
    end: *mut c_void,
    arg: *mut c_void,
) -> c_int
where
    F: Fn(Range<usize>) -> Result<(), E> + Sync,
    E: Send,
{
    // SAFETY: the argument of the control block; `work` is Sync, the rest is locked.
    let shared = unsafe { &*arg.cast::<Shared<'_, E, F, U>>() };
    let range = start as usize..end as usize;
    let first = range.start;

    match catch_unwind(AssertUnwindSafe(|| (shared.work)(range))) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => shared.keep_failure(first, error),
        Err(panic) => shared.keep_panic(panic),
    }
    CHUNK_FAILED
}

unsafe extern "C" fn undo_chunks<E, F, U>(start: *mut c_void, end: *mut c_void, arg: *mut c_void)
where
    U: Fn(Range<usize>),
{
    // SAFETY: as above; in the thread that asked.
    let shared = unsafe { &*arg.cast::<Shared<'_, E, F, U>>() };

    // The other chunks are undone all the same.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| {
        (shared.undo)(start as usize..end as usize)
    })) {
        shared.keep_panic(panic);
    }
}
