# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The memory of a guest by one thread and by two, by turns: make bench-rust.

    guest_memory.py EXAMPLE [MIB [ROUNDS]]

EXAMPLE is the program of examples/guest_memory.rs, which tells for each region what
making its pages took.  Before each run that counts one that does not fetches what the
host of this machine has taken back.
"""

import re
import statistics
import subprocess
import sys


def seconds_by(example, mib, threads):
    said = subprocess.run(
        [example, str(mib), str(threads)], check=True, capture_output=True, text=True
    ).stderr
    return sum(map(float, re.findall(r"threads, ([\d.]+) s", said)))


def tell(name, values, unit):
    print(
        f"{name:12} {statistics.median(values):7.3f} {unit}"
        f"  ({min(values):.3f} to {max(values):.3f})"
    )


def main():
    example = sys.argv[1]
    mib, rounds = (list(map(int, sys.argv[2:])) + [4096, 9][len(sys.argv) - 2:])[:2]
    seconds = {1: [], 2: []}
    for round in range(rounds):
        for threads in (1, 2) if round % 2 else (2, 1):
            # In a virtual machine the host may have to give the memory first.
            seconds_by(example, mib, 2)
            seconds[threads].append(seconds_by(example, mib, threads))
    print(f"{mib} MiB of guest memory, {rounds} rounds")
    tell("one thread", seconds[1], "s")
    tell("two threads", seconds[2], "s")
    tell("ratio", [one / two for one, two in zip(seconds[1], seconds[2])], "x")


if __name__ == "__main__":
    main()
