// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The blocking cases of `make bench-tasks` by Tokio; see ../blocking.c.  What blocks a
//! thread, sleeps, reads and faults, is left to its blocking threads, and computing to
//! its workers.  (Its own timers block no thread; a sleep stands for any call that does.)

use std::cell::RefCell;
use std::ffi::{c_int, c_long, c_void};
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::io::AsRawFd;
use std::process::exit;
use std::ptr::{null_mut, read_volatile};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
const PART: usize = 65536;
const O_DIRECT: i32 = if cfg!(any(target_arch = "aarch64", target_arch = "arm")) {
    0o200000
} else {
    0o40000
};
const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;
const MADV_RANDOM: c_int = 1;
const DONTNEED: c_int = 4; // of madvise() and posix_fadvise()
const THREAD_CLOCK: c_int = 3; // CLOCK_THREAD_CPUTIME_ID

extern "C" {
    fn mmap(at: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: c_long)
        -> *mut c_void;
    fn madvise(at: *mut c_void, len: usize, advice: c_int) -> c_int;
    fn posix_fadvise(fd: c_int, offset: c_long, len: c_long, advice: c_int) -> c_int;
    fn clock_gettime(clock: c_int, now: *mut [c_long; 2]) -> c_int;
}

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; PART + PAGE]);
}

struct Mapped {
    direct: File,
    cached: File,
    at: usize,
    bytes: usize,
}

struct Bench {
    kind: usize, // 3: each task another
    file: Option<Mapped>,
    loops: u64, // a tenth of a millisecond
    begun: AtomicUsize,
    good: AtomicUsize,
}

fn fail(what: &str, why: impl std::fmt::Display) -> ! {
    eprintln!("{what}: {why}");
    exit(2)
}

fn thread_ns() -> i64 {
    let mut now = [0; 2];

    unsafe { clock_gettime(THREAD_CLOCK, &mut now) };
    now[0] as i64 * 1_000_000_000 + now[1] as i64
}

fn spin(nr: u64) {
    for i in 0..nr {
        black_box(i);
    }
}

fn loops_of_a_tenth() -> u64 {
    let start = thread_ns();

    spin(20_000_000);
    (2e7 / (thread_ns() - start) as f64 * 1e5) as u64
}

fn map_file() -> Mapped {
    let path = std::env::var("BENCH_TASKS_FILE").unwrap_or_default();
    let direct = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(&path);
    let direct = direct.unwrap_or_else(|why| fail(&path, why));
    let cached = File::open(&path).unwrap_or_else(|why| fail(&path, why));
    let bytes = cached.metadata().map_or(0, |data| data.len()) as usize / PART * PART;
    let at = unsafe { mmap(null_mut(), bytes, PROT_READ, MAP_SHARED, cached.as_raw_fd(), 0) };

    if bytes == 0 || at as isize == -1 || unsafe { madvise(at, bytes, MADV_RANDOM) } != 0 {
        fail(&path, "cannot be mapped");
    }
    Mapped { direct, cached, at: at as usize, bytes }
}

impl Mapped {
    fn forget(&self) {
        unsafe {
            madvise(self.at as *mut c_void, self.bytes, DONTNEED);
            posix_fadvise(self.cached.as_raw_fd(), 0, 0, DONTNEED);
        }
    }

    fn read(&self, nr: usize) -> bool {
        BUFFER.with(|buffer| {
            let mut buffer = buffer.borrow_mut();
            let skip = buffer.as_ptr().align_offset(PAGE);
            let room = &mut buffer[skip..skip + PART];

            self.direct.read_exact_at(room, (nr * PART % self.bytes) as u64).is_ok()
        })
    }

    fn touch(&self, nr: usize) -> bool {
        let part = self.at + nr * PART % self.bytes;

        for page in (part..part + PART).step_by(PAGE) {
            unsafe { read_volatile(page as *const u8) };
        }
        true
    }
}

async fn block(bench: Arc<Bench>) {
    let nr = bench.begun.fetch_add(1, Relaxed);
    let kind = if bench.kind == 3 { nr % 3 } else { bench.kind };
    let other = bench.clone();
    let blocks = move || match kind {
        0 => {
            std::thread::sleep(Duration::from_millis(1));
            true
        }
        1 => other.file.as_ref().unwrap().read(nr),
        _ => other.file.as_ref().unwrap().touch(nr),
    };
    let good = tokio::task::spawn_blocking(blocks).await.unwrap_or(false);

    bench.good.fetch_add(good as usize, Relaxed);
    spin(bench.loops);
}

/// Nanoseconds a task.
async fn run(bench: &Arc<Bench>, nr: usize) -> f64 {
    bench.begun.store(0, Relaxed);
    bench.good.store(0, Relaxed);
    if let Some(file) = &bench.file {
        file.forget();
    }
    let start = Instant::now();
    let tasks: Vec<_> = (0..nr).map(|_| tokio::spawn(block(bench.clone()))).collect();
    for task in tasks {
        let _ = task.await;
    }
    let took = start.elapsed();
    if bench.good.load(Relaxed) != nr {
        eprintln!("no right result");
        exit(1);
    }
    took.as_nanos() as f64 / nr as f64
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let kinds = ["block", "block-read", "block-fault", "block-mixed"];
    let kind = args.first().and_then(|name| kinds.iter().position(|kind| kind == name));
    let threads = args.get(1).and_then(|threads| threads.parse().ok());
    let (Some(kind), Some(threads)) = (kind, threads) else { exit(2) };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .build()
        .unwrap_or_else(|why| fail("starting Tokio", why));
    let bench = Arc::new(Bench {
        kind,
        file: (kind > 0).then(map_file),
        loops: loops_of_a_tenth(),
        begun: AtomicUsize::new(0),
        good: AtomicUsize::new(0),
    });
    let is_small = args.len() > 2;
    let both = async move {
        let first = run(&bench, 40).await;

        if is_small { first } else { run(&bench, 400).await }
    };
    // By a worker, as in the others: block_on() does it by this thread.
    let ns = runtime.block_on(async { tokio::spawn(both).await });
    let ns = ns.unwrap_or_else(|why| fail("running", why));

    println!("{ns:.1}");
}
