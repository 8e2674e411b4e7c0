#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Write, then read so many bytes, 16 blocks at a time: how long the disk alone
takes for an application's files, and the CPUs for its system calls.  Before
that: milliseconds until one write alone has ended, and until all is safe.
Arguments: directory, bytes to write, bytes to read, bytes of a block;
"buffered" where it shall not be done directly; "safe" where what is written
shall be on the disk in the end, also if it is buffered.  Prints JSON."""

import concurrent.futures
import json
import mmap
import os
import statistics
import sys
import time

directory, written, read, block = sys.argv[1], *map(int, sys.argv[2:5])
block = (block + 4095) & ~4095
path = os.path.join(directory, "only-io")
direct = 0 if "buffered" in sys.argv[5:] else os.O_DIRECT
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | direct, 0o600)
os.unlink(path)
data = mmap.mmap(-1, block)
data.write(os.urandom(block))


def write(index):
    os.pwrite(fd, data, index * block)


def fetch(index):
    os.preadv(fd, [mmap.mmap(-1, block)], index * block)


def reserve(size):
    """Else writes wait for each other where the file becomes longer."""
    if size:
        os.posix_fallocate(fd, 0, size)


def took_ms(what, *args):
    begin = time.monotonic()
    what(*args)
    return 1e3 * (time.monotonic() - begin)


reserve(9 * block)
both = [(took_ms(write, index), took_ms(os.fsync, fd)) for index in range(9)]
latency_ms, sync_ms = map(statistics.median, zip(*both))
os.ftruncate(fd, 0)
reserve(written)
begin, cpu = time.monotonic(), time.process_time()
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    list(pool.map(write, range(written // block)))
    if "safe" in sys.argv[5:]:
        os.fsync(fd)
    list(pool.map(fetch, range(read // block)))
print(json.dumps({"seconds": time.monotonic() - begin,
                  "cpu_seconds": time.process_time() - cpu,
                  "latency_ms": latency_ms, "sync_ms": sync_ms}))
