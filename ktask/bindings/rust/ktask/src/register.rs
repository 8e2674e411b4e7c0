// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Registering memory with a device, piece by piece.

use std::any::Any;
use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;
use std::slice;
use std::thread;
use std::time::Duration;

use ktask_sys::{ktask_register_ctl, ktask_registration, ktask_registration_info};

use crate::options::{empty_result, with_opts};
use crate::{Error, JobError, Options, Report};

/// What memory is registered with.
///
/// Both functions are called by the thread that asked, for one piece at a time.  A piece
/// that fails or panics cleans up after itself.
pub trait Device {
    type Error;

    /// Register `len` bytes from `start` on.
    fn register(&mut self, start: *mut u8, len: usize) -> Result<(), Self::Error>;

    /// Take a piece back, which was registered with the same arguments.
    fn unregister(&mut self, start: *mut u8, len: usize) -> Result<(), Self::Error>;
}

/// How to register: [`register`](Register::register) does it.
#[derive(Default)]
pub struct Register<'a> {
    options: Options<'a>,
    flags: c_uint,
    stall: Duration,
    unit: usize,
    max_piece: usize,
}

impl<'a> Register<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn options(mut self, options: Options<'a>) -> Self {
        self.options = options;
        self
    }

    /// No call of the device shall take longer; 50 ms if it is not set.
    pub fn stall(mut self, stall: Duration) -> Self {
        self.stall = stall;
        self
    }

    /// Edges between pieces lie at multiples of it, counted from the beginning.
    pub fn unit(mut self, bytes: usize) -> Self {
        self.unit = bytes;
        self
    }

    pub fn max_piece(mut self, bytes: usize) -> Self {
        self.max_piece = bytes;
        self
    }

    /// The pages are there: make none.
    pub fn present(mut self) -> Self {
        self.flags |= ktask_sys::KTASK_REGISTER_PRESENT;
        self
    }

    /// The device only reads: make pages as if they were read.
    pub fn read(mut self) -> Self {
        self.flags |= ktask_sys::KTASK_REGISTER_READ;
        self
    }

    /// Register `memory`, until what is returned is dropped.  If it fails, all is taken
    /// back.
    pub fn register<T, D: Device>(
        self,
        memory: &mut [T],
        device: D,
    ) -> Result<Registration<'_, T, D>, JobError<D::Error>> {
        // SAFETY: it is borrowed as long as it is registered.
        unsafe { self.register_raw(memory.as_mut_ptr(), memory.len(), device) }
    }

    /// As [`register`](Register::register), of memory that is no slice.
    ///
    /// # Safety
    ///
    /// `len` items from `addr` on must stay mapped until what is returned is dropped, and
    /// be borrowed by nobody while it lends them.
    pub unsafe fn register_raw<'m, T, D: Device>(
        self,
        addr: *mut T,
        len: usize,
        device: D,
    ) -> Result<Registration<'m, T, D>, JobError<D::Error>> {
        let calls = Box::new(Calls {
            device,
            begin: addr as usize,
            failed: None,
            panic: None,
        });
        let mut registered = Registration {
            raw: ptr::null_mut(),
            calls: Box::into_raw(calls),
            addr,
            len,
            report: Report::from(&empty_result()),
            memory: PhantomData,
        };
        let ctl = ktask_register_ctl {
            struct_size: mem::size_of::<ktask_register_ctl>(),
            register_func: Some(add_piece::<D>),
            unregister_func: Some(take_piece::<D>),
            func_arg: registered.calls.cast(),
            flags: self.flags,
            stall_us: c_uint::try_from(self.stall.as_micros()).unwrap_or(c_uint::MAX),
            unit_bytes: self.unit,
            max_piece_bytes: self.max_piece,
            reserved: [0; 4],
        };
        let bytes = len * mem::size_of::<T>();
        let raw: *mut *mut ktask_registration = &mut registered.raw;
        // SAFETY: the range is the caller's; the rest lives until it is unregistered.
        let outcome = with_opts("register", self.options, addr as usize, |opts| unsafe {
            ktask_sys::ktask_register(raw, addr.cast(), bytes, &ctl, opts)
        });
        registered.report = registered.judge(outcome)?;
        Ok(registered)
    }
}

/// What the library's calls of a device share, at an address that does not change.
struct Calls<D: Device> {
    device: D,
    begin: usize,
    /// where the piece begins that failed first
    failed: Option<(usize, D::Error)>,
    panic: Option<Box<dyn Any + Send>>,
}

// What a piece says that has failed.  The library's own codes are negative.
const PIECE_FAILED: c_int = 1;

/// SAFETY: `arg` is a `Calls<D>` that nobody else uses meanwhile.
unsafe fn call_device<D: Device>(
    start: *mut c_void,
    arg: *mut c_void,
    call: impl FnOnce(&mut D) -> Result<(), D::Error>,
) -> c_int {
    // SAFETY: the caller's.
    let calls = unsafe { &mut *arg.cast::<Calls<D>>() };

    match catch_unwind(AssertUnwindSafe(|| call(&mut calls.device))) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => {
            calls
                .failed
                .get_or_insert((start as usize - calls.begin, error));
        }
        Err(panic) => {
            calls.panic.get_or_insert(panic);
        }
    }
    PIECE_FAILED
}

unsafe extern "C" fn add_piece<D: Device>(
    start: *mut c_void,
    end: *mut c_void,
    arg: *mut c_void,
) -> c_int {
    let len = end as usize - start as usize;

    // SAFETY: the argument of the control block, by the thread that gave it.
    unsafe { call_device::<D>(start, arg, |device| device.register(start.cast(), len)) }
}

unsafe extern "C" fn take_piece<D: Device>(
    start: *mut c_void,
    end: *mut c_void,
    arg: *mut c_void,
) -> c_int {
    let len = end as usize - start as usize;

    // SAFETY: as above.
    unsafe { call_device::<D>(start, arg, |device| device.unregister(start.cast(), len)) }
}

/// Memory that stays registered until this is dropped.  It lends the memory, to which the
/// device may write meanwhile.  One that is forgotten leaves it registered: to forget it
/// is wrong wherever the memory is freed.
pub struct Registration<'a, T, D: Device> {
    raw: *mut ktask_registration,
    calls: *mut Calls<D>,
    addr: *mut T,
    len: usize,
    report: Report,
    memory: PhantomData<&'a mut [T]>,
}

impl<T, D: Device> Registration<'_, T, D> {
    /// What registering did: units are bytes, chunks pieces.
    pub fn report(&self) -> Report {
        self.report
    }

    pub fn device(&mut self) -> &mut D {
        // SAFETY: the library calls the device only inside of calls that borrow `self`.
        unsafe { &mut (*self.calls).device }
    }

    /// The pieces that are registered, as offsets and lengths in bytes.
    pub fn pieces(&self) -> Vec<(usize, usize)> {
        let piece = |index| {
            let (mut start, mut end) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: a registration, or null, which is refused.
            let code = unsafe {
                ktask_sys::ktask_registration_piece(self.raw, index, &mut start, &mut end)
            };

            (code == 0).then(|| {
                (
                    start as usize - self.addr as usize,
                    end as usize - start as usize,
                )
            })
        };

        (0..).map_while(piece).collect()
    }

    /// The longest of the device's calls.
    pub fn longest_call(&self) -> Duration {
        let mut info = ktask_registration_info {
            struct_size: mem::size_of::<ktask_registration_info>(),
            ..Default::default()
        };

        // SAFETY: as above; then nothing is filled.
        unsafe { ktask_sys::ktask_registration_info_get(self.raw, &mut info) };
        Duration::from_nanos(info.longest_ns)
    }

    /// Take all pieces back, the last one first.  A piece whose call fails is given up.
    pub fn unregister(mut self) -> Result<(), JobError<D::Error>> {
        self.take_back(Options::new())
    }

    fn take_back(&mut self, options: Options<'_>) -> Result<(), JobError<D::Error>> {
        if self.raw.is_null() {
            return Ok(());
        }
        let raw: *mut *mut ktask_registration = &mut self.raw;
        // SAFETY: what `ktask_register` has set; `calls` lives as long as `self`.
        let outcome = with_opts("unregister", options, self.addr as usize, |opts| unsafe {
            ktask_sys::ktask_unregister(raw, opts)
        });
        self.judge(outcome).map(|_| ())
    }

    fn judge(&mut self, outcome: Result<Report, Error>) -> Result<Report, JobError<D::Error>> {
        // SAFETY: no call is under way.
        let calls = unsafe { &mut *self.calls };

        if let Some(panic) = calls.panic.take() {
            resume_unwind(panic);
        }
        match (outcome, calls.failed.take()) {
            (Ok(report), _) => Ok(report),
            (Err(_), Some((start, error))) => Err(JobError::Chunk { start, error }),
            (Err(error), None) => Err(JobError::Ended(error)),
        }
    }
}

impl<T, D: Device> Deref for Registration<'_, T, D> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the slice that was given.
        unsafe { slice::from_raw_parts(self.addr, self.len) }
    }
}

impl<T, D: Device> DerefMut for Registration<'_, T, D> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.addr, self.len) }
    }
}

impl<T, D: Device> Drop for Registration<'_, T, D> {
    fn drop(&mut self) {
        let taken = catch_unwind(AssertUnwindSafe(|| self.take_back(Options::new())));

        // SAFETY: nothing is registered; made by `Box::into_raw()`.
        drop(unsafe { Box::from_raw(self.calls) });
        if let Err(panic) = taken {
            if !thread::panicking() {
                resume_unwind(panic);
            }
        }
    }
}
