// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Checkpoints in heat's own format, which it can go on from.

use crate::plate::{sum64, Plate};
use crate::Options;
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ffi::{c_char, CString};
use std::fs::{remove_file, rename, File, OpenOptions};
use std::io::Result;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const PAGE: usize = 4096;
const MAGIC: u64 = 0x31544145484b5459;
#[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
const O_DIRECT: i32 = 0o200000;
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm")))]
const O_DIRECT: i32 = 0o40000;

extern "C" {
    fn fallocate(fd: i32, mode: i32, offset: i64, length: i64) -> i32;
    fn renameat2(
        old_dir: i32,
        old: *const c_char,
        new_dir: i32,
        new: *const c_char,
        flags: u32,
    ) -> i32;
}

/// What was there, if anything, becomes `from`: its room is used again.
fn swap(from: &str, to: &str) -> Result<()> {
    const AT_FDCWD: i32 = -100;
    const RENAME_EXCHANGE: u32 = 2;
    let (a, b) = (CString::new(from)?, CString::new(to)?);
    // SAFETY: both strings live on.
    let failed = unsafe {
        renameat2(AT_FDCWD, a.as_ptr(), AT_FDCWD, b.as_ptr(), RENAME_EXCHANGE)
    };
    if failed == 0 {
        return Ok(());
    }
    rename(from, to)
}

/// Zeroed memory that direct I/O accepts.
struct Pages {
    data: *mut u8,
    layout: Layout,
}

// SAFETY: owned like a vector.
unsafe impl Send for Pages {}
unsafe impl Sync for Pages {}

impl Pages {
    fn new(bytes: usize) -> Self {
        let bytes = bytes.div_ceil(PAGE) * PAGE;
        let layout = Layout::from_size_align(bytes, PAGE).expect("a size");
        // SAFETY: nothing has no bytes here.
        let data = unsafe { alloc_zeroed(layout) };
        if data.is_null() {
            handle_alloc_error(layout);
        }
        Pages { data, layout }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: as it was allocated.
        unsafe { dealloc(self.data, self.layout) }
    }
}

impl Deref for Pages {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: ours, and initialised.
        unsafe { std::slice::from_raw_parts(self.data, self.layout.size()) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: ours, and initialised.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.layout.size()) }
    }
}

struct Open {
    file: File,
    sweep: usize,
    sums: Vec<AtomicU64>, // of the blocks
}

pub struct Checkpoints<'a> {
    plate: &'a Plate,
    dir: String,
    buffered: bool,
    open: [Mutex<Option<Arc<Open>>>; 2],
    bytes: AtomicU64,
    spares: Mutex<Vec<Pages>>, // memory for blocks
    error: Mutex<Option<String>>,
}

impl<'a> Checkpoints<'a> {
    pub fn new(plate: &'a Plate, options: &Options) -> Self {
        Checkpoints {
            plate,
            dir: options.dir.clone(),
            buffered: options.buffered,
            open: [Mutex::new(None), Mutex::new(None)],
            bytes: AtomicU64::new(0),
            spares: Mutex::new(Vec::new()),
            error: Mutex::new(None),
        }
    }

    pub fn error(&self) -> Option<String> {
        self.error.lock().unwrap().clone()
    }

    /// Nothing is written any more.
    pub fn end(&self) {
        for nr in 1..=2 {
            let _ = remove_file(self.part(nr));
        }
    }

    pub fn written(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    fn keep(&self, result: Result<()>) {
        if let Err(error) = result {
            self.error.lock().unwrap().get_or_insert(error.to_string());
        }
    }

    fn part(&self, nr: usize) -> String {
        format!("{}/heat.0.part{}", self.dir, (nr - 1) % 2)
    }

    fn nr_blocks(&self) -> usize {
        self.plate.block_rows * self.plate.block_cols
    }

    fn table_bytes(&self) -> usize {
        (8 * self.nr_blocks()).div_ceil(PAGE) * PAGE
    }

    fn try_begin(&self, nr: usize, sweep: usize) -> Result<()> {
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false);
        if !self.buffered {
            how.custom_flags(O_DIRECT);
        }
        let sums = (0..self.nr_blocks()).map(|_| AtomicU64::new(0)).collect();
        let file = how.open(self.part(nr))?;
        let block = Pages::new(self.plate.block * self.plate.block * 8).len();
        let all = PAGE + self.table_bytes() + self.nr_blocks() * block;
        file.set_len(all as u64)?;
        // Else writes that make the file longer wait for each other.  What
        // cannot be had is told by the writes.
        // SAFETY: the descriptor is open.
        unsafe { fallocate(file.as_raw_fd(), 0, 0, all as i64) };
        *self.open[nr % 2].lock().unwrap() =
            Some(Arc::new(Open { file, sweep, sums }));
        Ok(())
    }

    pub fn begin(&self, nr: usize, sweep: usize) {
        self.keep(self.try_begin(nr, sweep));
    }

    pub fn block(&self, nr: usize, row: usize, col: usize) {
        let Some(to) = self.open[nr % 2].lock().unwrap().clone() else {
            return;
        };
        let plate = self.plate;
        let area = plate.area(row, col);
        let nr = area.col_end - area.col;
        let index = row * plate.block_cols + col;
        let spare = self.spares.lock().unwrap().pop();
        let mut copy = spare
            .unwrap_or_else(|| Pages::new(plate.block * plate.block * 8));
        for row in area.row..area.row_end {
            let at = (row - area.row) * nr * 8;
            copy[at..at + 8 * nr]
                .copy_from_slice(plate.bytes(row, area.col, nr));
        }
        let used = (area.row_end - area.row) * nr * 8;
        copy[used..].fill(0);
        to.sums[index].store(sum64(&copy), Relaxed);
        let at = PAGE + self.table_bytes() + index * copy.len();
        self.keep(to.file.write_all_at(&copy, at as u64));
        self.bytes.fetch_add(copy.len() as u64, Relaxed);
        self.spares.lock().unwrap().push(copy);
    }

    fn header(&self, from: &Open, table: &Pages) -> Pages {
        let plate = self.plate;
        let mut header = Pages::new(PAGE);
        header[..8].copy_from_slice(&MAGIC.to_le_bytes());
        let numbers =
            [plate.rows, plate.cols, plate.block, 0, plate.rows, from.sweep];
        for (i, number) in numbers.iter().enumerate() {
            header[8 + 4 * i..12 + 4 * i]
                .copy_from_slice(&(*number as u32).to_le_bytes());
        }
        header[32..40].copy_from_slice(&sum64(table).to_le_bytes());
        let sum = sum64(&header[..40]);
        header[40..48].copy_from_slice(&sum.to_le_bytes());
        header
    }

    fn try_seal(&self, nr: usize, from: &Open) -> Result<()> {
        let mut table = Pages::new(self.table_bytes());
        for (i, sum) in from.sums.iter().enumerate() {
            table[8 * i..8 * i + 8]
                .copy_from_slice(&sum.load(Relaxed).to_le_bytes());
        }
        from.file.write_all_at(&table, PAGE as u64)?;
        from.file.write_all_at(&self.header(from, &table), 0)?;
        from.file.sync_all()?;
        swap(&self.part(nr), &format!("{}/heat.0.{}", self.dir, nr % 2))?;
        File::open(&self.dir)?.sync_all()
    }

    pub fn seal(&self, nr: usize) {
        let from = self.open[nr % 2].lock().unwrap().take();
        if let Some(from) = from {
            self.keep(self.try_seal(nr, &from));
        }
    }
}
