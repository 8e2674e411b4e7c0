// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! heat in Rust, its tasks by rayon: the options that the benchmark gives and
//! what it cost as JSON.  plate.rs has the cells, graph.rs the tasks,
//! checkpoint.rs the files.

mod checkpoint;
mod graph;
mod plate;

use std::process::exit;
use std::time::Instant;

pub struct Options {
    pub rows: usize,
    pub cols: usize,
    pub block: usize,
    pub sweeps: usize,
    pub every: usize,
    pub workers: usize,
    pub dir: String,
    pub buffered: bool,
}

fn fail(why: &str) -> ! {
    eprintln!("heat-rust: {why}");
    exit(2)
}

fn parse() -> Options {
    let mut options = Options {
        rows: 2048,
        cols: 2048,
        block: 256,
        sweeps: 100,
        every: 0,
        workers: std::thread::available_parallelism().map_or(1, |n| n.get()),
        dir: ".".into(),
        buffered: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        match name.as_str() {
            "--json" => continue,
            "--buffered" => {
                options.buffered = true;
                continue;
            }
            _ => (),
        }
        let value = args.next().unwrap_or_else(|| fail("a value is missing"));
        if name == "--dir" {
            options.dir = value;
            continue;
        }
        let place = match name.as_str() {
            "--rows" => &mut options.rows,
            "--cols" => &mut options.cols,
            "--block" => &mut options.block,
            "--iterations" => &mut options.sweeps,
            "--every" => &mut options.every,
            "--workers" => &mut options.workers,
            _ => fail(&format!("unknown option {name}")),
        };
        *place = value.parse().unwrap_or_else(|_| fail("not a number"));
    }
    options
}

extern "C" {
    /// glibc's struct rusage: two times of two numbers, then 14 numbers.
    fn getrusage(who: i32, usage: *mut [i64; 18]) -> i32;
}

/// CPU seconds and voluntary context switches of this process.
fn usage() -> (f64, i64) {
    let mut usage = [0i64; 18];
    // SAFETY: as large as the C library's structure.
    unsafe { getrusage(0, &mut usage) };
    let micro = (usage[1] + usage[3]) as f64;
    ((usage[0] + usage[2]) as f64 + micro * 1e-6, usage[16])
}

fn main() {
    let options = parse();
    let plate = plate::Plate::new(&options);
    let files = checkpoint::Checkpoints::new(&plate, &options);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.workers)
        .build()
        .unwrap_or_else(|error| fail(&error.to_string()));

    let begin = Instant::now();
    let before = usage();
    pool.install(|| graph::Graph::new(&plate, &files, &options).run());
    let seconds = begin.elapsed().as_secs_f64();
    let after = usage();
    files.end();
    if let Some(error) = files.error() {
        eprintln!("heat-rust: {error}");
        exit(1);
    }
    let cpu = after.0 - before.0;
    println!(
        "{{\"seconds\":{},\"cells_per_second\":{},\"cpu_seconds\":{},\
         \"cpu_percent\":{},\"bytes_written\":{},\"bytes_read\":0,\
         \"switches\":{},\"sum\":\"{:016x}\"}}",
        seconds,
        (options.rows * options.cols * options.sweeps) as f64 / seconds,
        cpu,
        100.0 * cpu / seconds / options.workers as f64,
        files.written(),
        after.1 - before.1,
        plate.sum()
    );
}
