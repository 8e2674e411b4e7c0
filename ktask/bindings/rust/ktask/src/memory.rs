// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Operations on memory and on files.
//!
//! Pages at the edges of a slice, which it shares with other objects, are done as a
//! whole.  That changes nothing that these hold.

use std::ffi::{c_uint, c_void, CStr};
use std::mem;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use ktask_sys::{ktask_file, ktask_op_args};

use crate::options::with_opts;
use crate::{Error, Options, Report};

const POPULATE: &CStr = c"populate";
const LOCK: &CStr = c"lock";
const UNLOCK: &CStr = c"unlock";
const WARM: &CStr = c"warm";

fn no_args() -> ktask_op_args {
    ktask_op_args {
        struct_size: mem::size_of::<ktask_op_args>(),
        addr: ptr::null_mut(),
        len: 0,
        flags: 0,
        src: ptr::null(),
        src_len: 0,
        files: ptr::null_mut(),
        nr_files: 0,
    }
}

/// SAFETY: of the range in `args` the caller may say what the operation does.
unsafe fn run_op(
    operation: &'static CStr,
    args: &ktask_op_args,
    options: Options<'_>,
    begin: usize,
) -> Result<Report, Error> {
    let op = find_op(operation);

    // SAFETY: the caller's; what the options point to lives until the call returns.
    with_opts(
        operation.to_str().unwrap_or_default(),
        options,
        begin,
        |opts| unsafe { ktask_sys::ktask_op_run(op, args, opts) },
    )
}

fn find_op(name: &CStr) -> *const ktask_sys::ktask_op {
    // SAFETY: a C string; what is found is static.
    unsafe { ktask_sys::ktask_op_find(name.as_ptr()) }
}

fn page_bytes() -> usize {
    extern "C" {
        fn getpagesize() -> std::ffi::c_int;
    }
    // SAFETY: has no condition.
    unsafe { getpagesize() as usize }
}

/// SAFETY: as `run_op()`, of all pages that have a byte of the range.
unsafe fn run_on_range(
    operation: &'static CStr,
    addr: *const u8,
    len: usize,
    flags: c_uint,
    options: Options<'_>,
) -> Result<Report, Error> {
    let before = addr as usize & (page_bytes() - 1);
    let mut args = no_args();

    args.flags = flags;
    if len != 0 {
        args.addr = addr.wrapping_sub(before) as *mut c_void;
        args.len = len + before;
    }
    // SAFETY: the caller's.
    let mut report = unsafe { run_op(operation, &args, options, addr as usize)? };
    report.units = report.units.min(len as u64);
    Ok(report)
}

impl Options<'_> {
    /// [`populate`] with options.
    pub fn populate<T>(self, memory: &mut [T]) -> Result<Report, Error> {
        // SAFETY: a page of memory that is borrowed for writing may be made.
        unsafe { self.populate_raw(memory.as_mut_ptr().cast(), mem::size_of_val(memory)) }
    }

    /// [`populate_read`] with options.
    pub fn populate_read<T>(self, memory: &[T]) -> Result<Report, Error> {
        let flags = ktask_sys::KTASK_POPULATE_READ;
        // SAFETY: a page of memory that is borrowed may be made.
        unsafe {
            run_on_range(
                POPULATE,
                memory.as_ptr().cast(),
                mem::size_of_val(memory),
                flags,
                self,
            )
        }
    }

    /// [`populate_raw`] with options.
    ///
    /// # Safety
    ///
    /// As there.
    pub unsafe fn populate_raw(self, addr: *mut u8, len: usize) -> Result<Report, Error> {
        // SAFETY: the caller's.
        unsafe { run_on_range(POPULATE, addr, len, 0, self) }
    }

    /// [`lock`] with options.
    pub fn lock<T>(self, memory: &mut [T]) -> Result<LockGuard<'_, T>, Error> {
        // SAFETY: memory that is borrowed may be locked; the guard unlocks it.
        unsafe { self.lock_raw(memory.as_mut_ptr().cast(), mem::size_of_val(memory))? };
        Ok(LockGuard { memory })
    }

    /// [`lock_raw`] with options.
    ///
    /// # Safety
    ///
    /// As there.
    pub unsafe fn lock_raw(self, addr: *mut u8, len: usize) -> Result<Report, Error> {
        // SAFETY: the caller's.
        unsafe { run_on_range(LOCK, addr, len, 0, self) }
    }

    /// [`warm`] with options.
    pub fn warm(self, file: impl AsFd, offset: u64, len: Option<u64>) -> Result<Report, Error> {
        let mut file = ktask_file {
            struct_size: mem::size_of::<ktask_file>(),
            path: ptr::null(),
            fd: file.as_fd().as_raw_fd(),
            nofollow: 0,
            offset,
            len: len.unwrap_or(ktask_sys::KTASK_TO_END),
            error: 0,
            fail_offset: 0,
            size: 0,
        };
        let mut args = no_args();

        args.files = &mut file;
        args.nr_files = 1;
        // SAFETY: reading a file changes no memory that is ours.
        unsafe { run_op(WARM, &args, self, 0) }.map_err(|error| match error {
            Error::System {
                operation, errno, ..
            } => Error::System {
                operation,
                errno,
                offset: (file.error != 0).then_some(file.fail_offset as usize),
            },
            other => other,
        })
    }
}

/// Make all pages of `memory` present, as if they were written; it stays as it is.
pub fn populate<T>(memory: &mut [T]) -> Result<Report, Error> {
    Options::new().populate(memory)
}

/// Make all pages of `memory` present, as if they were read.
pub fn populate_read<T>(memory: &[T]) -> Result<Report, Error> {
    Options::new().populate_read(memory)
}

/// As [`populate`], of memory that is no slice: that of a guest, or of a device.
///
/// # Safety
///
/// Nobody may unmap `[addr, addr + len)` meanwhile.  A range of which a part is not
/// mapped, or not writable, is an error, and no more.
pub unsafe fn populate_raw(addr: *mut u8, len: usize) -> Result<Report, Error> {
    // SAFETY: the caller's.
    unsafe { Options::new().populate_raw(addr, len) }
}

/// Populate `memory`, and lock it as `mlock(2)` does, until the guard is dropped.
///
/// Locks do not add up: a page that two guards share is unlocked by the first that is
/// dropped.
pub fn lock<T>(memory: &mut [T]) -> Result<LockGuard<'_, T>, Error> {
    Options::new().lock(memory)
}

/// As [`lock`], of memory that is no slice; [`unlock_raw`] ends it.
///
/// # Safety
///
/// As of [`populate_raw`].
pub unsafe fn lock_raw(addr: *mut u8, len: usize) -> Result<Report, Error> {
    // SAFETY: the caller's.
    unsafe { Options::new().lock_raw(addr, len) }
}

/// End the locks of a range, as `munlock(2)` does.
///
/// # Safety
///
/// As of [`populate_raw`]; nobody may rely on these locks.
pub unsafe fn unlock_raw(addr: *mut u8, len: usize) -> Result<(), Error> {
    // SAFETY: the caller's.
    unsafe { run_on_range(UNLOCK, addr, len, 0, Options::new()) }.map(|_| ())
}

/// Read a range of a file into the page cache; `len` `None`: to its end.
pub fn warm(file: impl AsFd, offset: u64, len: Option<u64>) -> Result<Report, Error> {
    Options::new().warm(file, offset, len)
}

/// Memory that stays locked until this is dropped.
#[derive(Debug)]
pub struct LockGuard<'a, T> {
    memory: &'a mut [T],
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.memory
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.memory
    }
}

impl<T> Drop for LockGuard<'_, T> {
    fn drop(&mut self) {
        let len = mem::size_of_val(self.memory);

        // SAFETY: it is borrowed.  What is mapped can be unlocked.
        let _ = unsafe { unlock_raw(self.memory.as_mut_ptr().cast(), len) };
    }
}
