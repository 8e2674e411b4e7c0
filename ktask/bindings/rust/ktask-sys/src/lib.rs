// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Declarations of libktask, which this crate compiles and links.
//!
//! They follow `ktask/ktask.h`, `ktask/ops.h` and `ktask/register.h`, where each is explained.  Owns
//! nothing but these; the crate `ktask` has safe calls.

#![allow(non_camel_case_types)]
#![no_std]

use core::ffi::{c_char, c_int, c_uint, c_void};

pub const KTASK_FIXED: c_uint = 0x1;
pub const KTASK_BLOCKS: c_uint = 0x2;
pub const KTASK_POPULATE_READ: c_uint = 0x1;
pub const KTASK_POPULATE_TOUCH: c_uint = 0x2;
pub const KTASK_DISCARD_FREE: c_uint = 0x1;
pub const KTASK_DISCARD_LOCKED: c_uint = 0x2;
pub const KTASK_STORE_STREAM: c_uint = 0x1;
pub const KTASK_STORE_CACHED: c_uint = 0x2;
pub const KTASK_FILE_DIRECT: c_uint = 0x1;
pub const KTASK_REGISTER_PARALLEL: c_uint = 0x1;
pub const KTASK_REGISTER_PRESENT: c_uint = 0x2;
pub const KTASK_REGISTER_READ: c_uint = 0x4;
pub const KTASK_REGISTER_MAKES_PAGES: c_uint = 0x8;
pub const KTASK_REGISTER_LOCKS_MAPPINGS: c_uint = 0x10;
pub const KTASK_TO_END: u64 = u64::MAX;
pub const KTASK_RESULT_NODES: usize = 8;
pub const NUMA_NO_NODE: c_int = -1;

pub type ktask_thread_func =
    unsafe extern "C" fn(start: *mut c_void, end: *mut c_void, arg: *mut c_void) -> c_int;
pub type ktask_undo_func =
    unsafe extern "C" fn(start: *mut c_void, end: *mut c_void, arg: *mut c_void);
pub type ktask_iter_func = unsafe extern "C" fn(position: *mut c_void, size: usize) -> *mut c_void;
pub type ktask_progress_func =
    unsafe extern "C" fn(progress: *const ktask_progress, arg: *mut c_void) -> c_int;

pub type ktask_register_func =
    unsafe extern "C" fn(start: *mut c_void, end: *mut c_void, arg: *mut c_void) -> c_int;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ktask_progress {
    pub struct_size: usize,
    pub units_done: u64,
    pub units_total: u64,
    pub elapsed_ns: u64,
    pub remaining_ns: u64,
    pub threads: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ktask_node_result {
    pub nid: c_int,
    pub chunks: u64,
    pub units: u64,
    pub remote_chunks: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ktask_result {
    pub struct_size: usize,
    pub error: c_int,
    pub fail_error: c_int,
    pub fail_pos: *mut c_void,
    pub fail_offset: usize,
    pub fail_range: usize,
    pub threads: c_uint,
    pub helpers_lent: c_uint,
    pub chunks: u64,
    pub units: u64,
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub tail_ns: u64,
    pub nr_nodes: c_uint,
    pub nodes: [ktask_node_result; KTASK_RESULT_NODES],
    pub largest_chunk: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ktask_ctl {
    pub struct_size: usize,
    pub thread_func: Option<ktask_thread_func>,
    pub func_arg: *mut c_void,
    pub min_chunk_size: usize,
    pub undo_func: Option<ktask_undo_func>,
    pub iter_func: Option<ktask_iter_func>,
    pub align: usize,
    pub max_threads: c_uint,
    pub flags: c_uint,
    pub deadline_ns: u64,
    pub progress_func: Option<ktask_progress_func>,
    pub progress_arg: *mut c_void,
    pub progress_ms: c_uint,
    pub chunk_us: c_uint,
    pub cpus: *const c_void,
    pub cpus_size: usize,
    pub result: *mut ktask_result,
    pub name: *const c_char,
    pub reserved: [u64; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ktask_opts {
    pub struct_size: usize,
    pub max_threads: c_uint,
    pub progress_ms: c_uint,
    pub deadline_ns: u64,
    pub progress_func: Option<ktask_progress_func>,
    pub progress_arg: *mut c_void,
    pub result: *mut ktask_result,
    pub flags: c_uint,
    pub chunk_us: c_uint,
    pub reserved: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ktask_file {
    pub struct_size: usize,
    pub path: *const c_char,
    pub fd: c_int,
    pub nofollow: c_uint,
    pub offset: u64,
    pub len: u64,
    pub error: c_int,
    pub fail_offset: u64,
    pub size: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ktask_op_args {
    pub struct_size: usize,
    pub addr: *mut c_void,
    pub len: usize,
    pub flags: c_uint,
    pub files: *mut ktask_file,
    pub nr_files: usize,
    pub src: *const c_void,
    pub src_len: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ktask_limit {
    pub struct_size: usize,
    pub name: *const c_char,
    pub threads: c_uint,
    pub why: [c_char; 120],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ktask_job_info {
    pub struct_size: usize,
    pub pid: c_int,
    pub uid: c_uint,
    pub name: [c_char; 16],
    pub helpers: c_uint,
    pub wanted: c_uint,
    pub units_done: u64,
    pub units_total: u64,
    pub elapsed_ns: u64,
    pub remaining_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ktask_permits_info {
    pub struct_size: usize,
    pub used: c_uint,
    pub limit: c_uint,
    pub shared: c_int,
    pub cut: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ktask_register_ctl {
    pub struct_size: usize,
    pub register_func: Option<ktask_register_func>,
    pub unregister_func: Option<ktask_register_func>,
    pub func_arg: *mut c_void,
    pub flags: c_uint,
    pub stall_us: c_uint,
    pub unit_bytes: usize,
    pub max_piece_bytes: usize,
    pub reserved: [u64; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ktask_registration_info {
    pub struct_size: usize,
    pub bytes: u64,
    pub pieces: u64,
    pub calls_ns: u64,
    pub longest_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ktask_uring_buffers {
    pub struct_size: usize,
    pub ring_fd: c_int,
    pub first_slot: c_uint,
    pub addr: *mut c_void,
    pub slot_bytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ktask_iommu {
    pub struct_size: usize,
    pub fd: c_int,
    pub ioas_id: c_uint,
    pub addr: *mut c_void,
    pub iova: u64,
    pub prot: c_uint,
    pub padding: c_uint,
}

/// Of libibverbs; opaque.
#[repr(C)]
pub struct ibv_pd {
    _private: [u8; 0],
}

/// Of libibverbs; opaque.
#[repr(C)]
pub struct ibv_mr {
    _private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ktask_verbs {
    pub struct_size: usize,
    pub pd: *mut ibv_pd,
    pub access: c_int,
    pub padding: c_uint,
    pub addr: *mut c_void,
    pub mr_bytes: usize,
    pub mrs: *mut *mut ibv_mr,
    pub nr_mrs: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ktask_cuda {
    pub struct_size: usize,
    pub flags: c_uint,
    pub cuda_error: c_int,
    pub library: *const c_char,
}

/// What is registered; opaque.
#[repr(C)]
pub struct ktask_registration {
    _private: [u8; 0],
}

/// An operation; opaque.
#[repr(C)]
pub struct ktask_op {
    _private: [u8; 0],
}

extern "C" {
    pub fn ktask_run(start: *mut c_void, task_size: usize, ctl: *const ktask_ctl) -> c_int;
    pub fn ktask_trim() -> c_uint;
    pub fn ktask_limits(limits: *mut ktask_limit, nr: c_uint) -> c_int;
    pub fn ktask_jobs(
        jobs: *mut ktask_job_info,
        nr: c_uint,
        permits: *mut ktask_permits_info,
    ) -> c_int;
    pub fn ktask_others_work(change: c_int);
    pub fn ktask_version() -> *const c_char;
    pub fn ktask_populate(addr: *mut c_void, len: usize, flags: c_uint) -> c_int;
    pub fn ktask_lock(addr: *mut c_void, len: usize, flags: c_uint) -> c_int;
    pub fn ktask_unlock(addr: *mut c_void, len: usize) -> c_int;
    pub fn ktask_discard(addr: *mut c_void, len: usize, flags: c_uint) -> c_int;
    pub fn ktask_unmap(addr: *mut c_void, len: usize) -> c_int;
    pub fn ktask_fill(
        addr: *mut c_void,
        len: usize,
        pattern: *const c_void,
        pattern_len: usize,
        flags: c_uint,
    ) -> c_int;
    pub fn ktask_warm(fd: c_int, offset: u64, len: u64, flags: c_uint) -> c_int;
    pub fn ktask_op_find(name: *const c_char) -> *const ktask_op;
    pub fn ktask_op_run(
        op: *const ktask_op,
        args: *const ktask_op_args,
        opts: *const ktask_opts,
    ) -> c_int;
    pub fn ktask_register(
        registration: *mut *mut ktask_registration,
        addr: *mut c_void,
        len: usize,
        ctl: *const ktask_register_ctl,
        opts: *const ktask_opts,
    ) -> c_int;
    pub fn ktask_unregister(
        registration: *mut *mut ktask_registration,
        opts: *const ktask_opts,
    ) -> c_int;
    pub fn ktask_registration_info_get(
        registration: *const ktask_registration,
        info: *mut ktask_registration_info,
    ) -> c_int;
    pub fn ktask_registration_piece(
        registration: *const ktask_registration,
        index: usize,
        start: *mut *mut c_void,
        end: *mut *mut c_void,
    ) -> c_int;
    pub fn ktask_register_uring(
        ctl: *mut ktask_register_ctl,
        buffers: *mut ktask_uring_buffers,
    ) -> c_int;
    pub fn ktask_register_vfio(ctl: *mut ktask_register_ctl, iommu: *mut ktask_iommu) -> c_int;
    pub fn ktask_register_iommufd(ctl: *mut ktask_register_ctl, iommu: *mut ktask_iommu) -> c_int;
    pub fn ktask_register_verbs(ctl: *mut ktask_register_ctl, verbs: *mut ktask_verbs) -> c_int;
    pub fn ktask_register_cuda(ctl: *mut ktask_register_ctl, cuda: *mut ktask_cuda) -> c_int;
}
