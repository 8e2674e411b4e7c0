# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What a call from Python costs, and the import: make bench-python.

The least of several measurements: what is asked is the cost of the package, not that of
whatever else this machine does.
"""

import mmap
import re
import subprocess
import sys
import timeit

import ktask

CALLS = 20_000
TIMES = 9


def call_us(memory):
    seconds = timeit.repeat(lambda: ktask.populate(memory), number=CALLS, repeat=TIMES)
    return min(seconds) / CALLS * 1e6


def system_call_us(memory):
    """Of the one system call that populating a page is."""
    advice = 23  # MADV_POPULATE_WRITE
    seconds = timeit.repeat(lambda: memory.madvise(advice), number=CALLS, repeat=TIMES)
    return min(seconds) / CALLS * 1e6


def import_ms():
    def once():
        said = subprocess.run(
            [sys.executable, "-P", "-X", "importtime", "-c", "import ktask"],
            check=True, capture_output=True, text=True,
        ).stderr
        return int(re.search(r"\|\s*(\d+) \| ktask$", said, re.M)[1])

    return min(once() for _ in range(TIMES)) / 1e3


def main():
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    print(f"a call with nothing to do   {call_us(bytearray()):6.2f} us  (goal: 5)")
    print(f"a call on a page            {call_us(page):6.2f} us  (goal: 5)")
    print(f"  its system call, from Python {system_call_us(page):3.2f} us")
    print(f"import ktask                {import_ms():6.2f} ms  (goal: 50)")


if __name__ == "__main__":
    main()
