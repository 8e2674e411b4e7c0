// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Memory of the tests, whose pages nobody else has.

#![allow(dead_code)]

use std::ffi::{c_int, c_long, c_void};
use std::ops::{Deref, DerefMut};
use std::slice;

extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, len: usize) -> c_int;
    fn mprotect(at: *mut c_void, len: usize, prot: c_int) -> c_int;
    fn mincore(at: *mut c_void, len: usize, vec: *mut u8) -> c_int;
}

pub const PAGE: usize = 4096;

/// Private anonymous memory.
pub struct Mapping {
    at: *mut u8,
    len: usize,
}

impl Mapping {
    pub fn new(len: usize) -> Self {
        // PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
        let at = unsafe { mmap(std::ptr::null_mut(), len, 3, 0x22, -1, 0) };

        assert_ne!(at as isize, -1);
        Mapping { at: at.cast(), len }
    }

    pub fn addr(&self) -> *mut u8 {
        self.at
    }

    /// The rest, from there on, cannot be accessed.
    pub fn forbid_from(&mut self, offset: usize) {
        let at = self.at.wrapping_add(offset).cast();

        assert_eq!(unsafe { mprotect(at, self.len - offset, 0) }, 0);
    }

    pub fn pages_present(&self) -> usize {
        let mut vec = vec![0u8; self.len.div_ceil(PAGE)];

        assert_eq!(
            unsafe { mincore(self.at.cast(), self.len, vec.as_mut_ptr()) },
            0
        );
        vec.iter().filter(|&&byte| byte & 1 != 0).count()
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        unsafe { slice::from_raw_parts(self.at, self.len) }
    }
}

impl DerefMut for Mapping {
    fn deref_mut(&mut self) -> &mut [u8] {
        unsafe { slice::from_raw_parts_mut(self.at, self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unsafe { munmap(self.at.cast(), self.len) };
    }
}

/// A number of /proc/self/status, in KiB.
pub fn status_kib(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();

    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
