#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Write, then read so many bytes directly, 16 blocks at a time: how long the
disk alone takes for an application's files.  Arguments: folder, bytes to
write, bytes to read, bytes of a block.  Prints JSON."""

import concurrent.futures
import json
import mmap
import os
import sys
import time

folder, written, read, block = sys.argv[1], *map(int, sys.argv[2:5])
block = (block + 4095) & ~4095
path = os.path.join(folder, "only-io")
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_DIRECT, 0o600)
os.unlink(path)
data = mmap.mmap(-1, block)
data.write(os.urandom(block))


def write(index):
    os.pwrite(fd, data, index * block)


def fetch(index):
    os.preadv(fd, [mmap.mmap(-1, block)], index * block)


begin = time.monotonic()
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    list(pool.map(write, range(written // block)))
    list(pool.map(fetch, range(read // block)))
print(json.dumps({"seconds": time.monotonic() - begin}))
