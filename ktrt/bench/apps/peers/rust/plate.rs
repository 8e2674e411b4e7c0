// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The plate and the sweep of a block.  Tasks share the cells without a lock:
//! the graph of tasks keeps those apart that would meet.

use crate::Options;
use std::cell::UnsafeCell;

pub struct Plate {
    pub rows: usize,
    pub cols: usize,
    pub block: usize,
    pub block_rows: usize,
    pub block_cols: usize,
    width: usize, // of a row with its border
    cells: UnsafeCell<Vec<f64>>,
}

// SAFETY: a cell is written by one task at a time, and read by none then.
unsafe impl Sync for Plate {}

#[link(name = "xxhash")]
extern "C" {
    fn XXH3_64bits(data: *const u8, bytes: usize) -> u64;
}

pub fn sum64(data: &[u8]) -> u64 {
    // SAFETY: reads what the slice is.
    unsafe { XXH3_64bits(data.as_ptr(), data.len()) }
}

pub struct Area {
    pub row: usize,
    pub row_end: usize,
    pub col: usize,
    pub col_end: usize,
}

impl Plate {
    pub fn new(options: &Options) -> Self {
        let (rows, cols, block) = (options.rows, options.cols, options.block);
        let width = cols + 2;
        let mut cells = vec![0.0; (rows + 2) * width];
        cells.iter_mut().step_by(width).for_each(|cell| *cell = 1.0);
        Plate {
            rows,
            cols,
            block,
            block_rows: rows.div_ceil(block),
            block_cols: cols.div_ceil(block),
            width,
            cells: UnsafeCell::new(cells),
        }
    }

    pub fn area(&self, row: usize, col: usize) -> Area {
        Area {
            row: 1 + row * self.block,
            row_end: 1 + (row * self.block + self.block).min(self.rows),
            col: 1 + col * self.block,
            col_end: 1 + (col * self.block + self.block).min(self.cols),
        }
    }

    fn at(&self, row: usize, col: usize) -> *mut f64 {
        // SAFETY: rows and columns are those of areas and their neighbours.
        unsafe { (*self.cells.get()).as_mut_ptr().add(row * self.width + col) }
    }

    /// Part of a row, as it is in memory; while nobody writes there.
    pub fn bytes(&self, row: usize, col: usize, nr: usize) -> &[u8] {
        // SAFETY: within the row.
        unsafe { std::slice::from_raw_parts(self.at(row, col).cast(), 8 * nr) }
    }

    pub fn sweep(&self, row: usize, col: usize) {
        let area = self.area(row, col);
        let nr = area.col_end - area.col;
        for row in area.row..area.row_end {
            let north = self.at(row - 1, area.col);
            let south = self.at(row + 1, area.col);
            let here = self.at(row, area.col);
            // SAFETY: within the rows, whose border is one cell wide.
            unsafe {
                let mut west = *here.sub(1);
                for i in 0..nr {
                    west = (*north.add(i) + *south.add(i) + west
                        + *here.add(i + 1)) / 4.0;
                    *here.add(i) = west;
                }
            }
        }
    }

    pub fn sum(&self) -> u64 {
        (1..=self.rows).fold(0u64, |sum, row| {
            sum.rotate_left(1) ^ sum64(self.bytes(row, 1, self.cols))
        })
    }
}
