// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The tasks, as ../peer.h has them.  rayon knows no dependences, so each task
//! counts those that are not met; whoever meets the last one spawns it.

use crate::checkpoint::Checkpoints;
use crate::plate::Plate;
use crate::Options;
use rayon::Scope;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel};

/// Checkpoints are numbered from 1.
#[derive(Clone, Copy)]
enum Task {
    Block { sweep: usize, row: usize, col: usize },
    Begin(usize),
    Seal(usize),
}

pub struct Graph<'a> {
    plate: &'a Plate,
    files: &'a Checkpoints<'a>,
    sweeps: usize,
    every: usize,
    blocks: Vec<AtomicU32>, // by sweep and block: what is not met
    begins: Vec<AtomicU32>,
    seals: Vec<AtomicU32>,
}

impl<'a> Graph<'a> {
    pub fn new(
        plate: &'a Plate,
        files: &'a Checkpoints<'a>,
        options: &Options,
    ) -> Self {
        let (sweeps, every) = (options.sweeps, options.every);
        let nr = sweeps.checked_div(every).unwrap_or(0);
        let all = plate.block_rows * plate.block_cols;
        let mut graph = Graph {
            plate,
            files,
            sweeps,
            every,
            blocks: Vec::with_capacity((sweeps + 1) * all),
            begins: (0..=nr)
                .map(|i| AtomicU32::new((i > 1) as u32 + (i > 2) as u32))
                .collect(),
            seals: (0..=nr)
                .map(|i| AtomicU32::new(all as u32 + (i > 1) as u32))
                .collect(),
        };
        for sweep in 0..=sweeps {
            for i in 0..all {
                let (row, col) = (i / plate.block_cols, i % plate.block_cols);
                let nr = graph.before(sweep, row, col);
                graph.blocks.push(AtomicU32::new(nr));
            }
        }
        graph
    }

    fn writes(&self, sweep: usize) -> bool {
        self.every > 0 && sweep % self.every == 0
    }

    fn before(&self, sweep: usize, row: usize, col: usize) -> u32 {
        let mut nr = (row > 0) as u32 + (col > 0) as u32;
        nr += self.writes(sweep) as u32;
        if sweep > 1 {
            nr += 1 + (row + 1 < self.plate.block_rows) as u32;
            nr += (col + 1 < self.plate.block_cols) as u32;
        }
        nr
    }

    fn met(&'a self, scope: &Scope<'a>, task: Task) {
        let count = match task {
            Task::Block { sweep, row, col } => {
                let rows = self.plate.block_rows;
                let at = (sweep * rows + row) * self.plate.block_cols + col;
                &self.blocks[at]
            }
            Task::Begin(nr) => &self.begins[nr],
            Task::Seal(nr) => &self.seals[nr],
        };
        if count.fetch_sub(1, AcqRel) == 1 {
            self.spawn(scope, task);
        }
    }

    fn met_block(
        &'a self,
        scope: &Scope<'a>,
        sweep: usize,
        row: usize,
        col: usize,
    ) {
        // One less than 0 is more than there are.
        if sweep <= self.sweeps
            && row < self.plate.block_rows
            && col < self.plate.block_cols
        {
            self.met(scope, Task::Block { sweep, row, col });
        }
    }

    fn met_begin(&'a self, scope: &Scope<'a>, nr: usize) {
        if nr < self.begins.len() {
            self.met(scope, Task::Begin(nr));
        }
    }

    fn met_seal(&'a self, scope: &Scope<'a>, nr: usize) {
        if nr < self.seals.len() {
            self.met(scope, Task::Seal(nr));
        }
    }

    fn do_block(
        &'a self,
        scope: &Scope<'a>,
        sweep: usize,
        row: usize,
        col: usize,
    ) {
        self.plate.sweep(row, col);
        if self.writes(sweep) {
            self.files.block(sweep / self.every, row, col);
            self.met_seal(scope, sweep / self.every);
        }
        self.met_block(scope, sweep, row + 1, col);
        self.met_block(scope, sweep, row, col + 1);
        self.met_block(scope, sweep + 1, row, col);
        self.met_block(scope, sweep + 1, row.wrapping_sub(1), col);
        self.met_block(scope, sweep + 1, row, col.wrapping_sub(1));
    }

    fn spawn(&'a self, scope: &Scope<'a>, task: Task) {
        scope.spawn(move |scope| match task {
            Task::Block { sweep, row, col } => {
                self.do_block(scope, sweep, row, col)
            }
            Task::Begin(nr) => {
                self.files.begin(nr, nr * self.every);
                for row in 0..self.plate.block_rows {
                    for col in 0..self.plate.block_cols {
                        self.met_block(scope, nr * self.every, row, col);
                    }
                }
                self.met_begin(scope, nr + 1);
            }
            Task::Seal(nr) => {
                self.files.seal(nr);
                self.met_seal(scope, nr + 1);
                self.met_begin(scope, nr + 2);
            }
        });
    }

    pub fn run(&'a self) {
        rayon::scope(|scope| {
            if self.sweeps > 0 && self.before(1, 0, 0) == 0 {
                let (sweep, row, col) = (1, 0, 0);
                self.spawn(scope, Task::Block { sweep, row, col });
            }
            if self.begins.len() > 1 {
                self.spawn(scope, Task::Begin(1));
            }
        });
    }
}
