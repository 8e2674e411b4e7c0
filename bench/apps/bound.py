#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What heat's graph of tasks allows: its makespan on cores that lose nothing.

A block that is in a checkpoint is written before its neighbours may begin, so
only a few sweeps can go on beside a slow write, however good the runtime.  The
figures of the machine are given (run.py's JSON has them); the disk takes one
block after another.  Prints JSON: seconds without cores that block (on) and
with them (off).
"""

import argparse
import heapq
import json


def before(sweep, row, col, n):
    """How many blocks come before this one, of n times n."""
    own = (row > 0) + (col > 0)
    return own if sweep == 1 else own + 1 + (row + 1 < n) + (col + 1 < n)


def after(sweep, row, col, args):
    for s, r, c in ((sweep, row + 1, col), (sweep, row, col + 1),
                    (sweep + 1, row, col), (sweep + 1, row - 1, col),
                    (sweep + 1, row, col - 1)):
        if s <= args.sweeps and 0 <= r < args.blocks and 0 <= c < args.blocks:
            yield s, r, c


def makespan(args, umt):
    ready, events, waits = [], [], {}
    free, disk, now, made = args.cores, 0.0, 0.0, 0

    def is_written(task):
        return args.every and task[0] % args.every == 0

    def add(task):
        """Checkpoints first, then the newest: as the runtime takes them."""
        nonlocal made
        made += 1
        heapq.heappush(ready, (not is_written(task), -made, task))

    add((1, 0, 0))
    while ready or events:
        while free and ready:
            task = heapq.heappop(ready)[2]
            free -= 1
            took = args.block_ms + (args.pack_ms if is_written(task) else 0)
            heapq.heappush(events, (now + took, False, task))
        now, written, task = heapq.heappop(events)
        if is_written(task) and not written:
            disk = max(disk, now) + args.write_ms
            heapq.heappush(events, (disk + args.latency_ms, True, task))
            free += umt
            continue
        free += not (written and umt)
        for other in after(*task, args):
            waits[other] = waits.get(other, before(*other, args.blocks)) - 1
            if not waits[other]:
                add(other)
    return now / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("cores", 2), ("blocks", 8), ("sweeps", 120),
                          ("every", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default, what in (
            ("block", 0.26, "CPU time of a block"),
            ("pack", 0.17, "more of it for one that is written"),
            ("write", 0.5, "what the disk takes for a block, of many"),
            ("latency", 0.5, "and until that is told, beside others")):
        parser.add_argument(f"--{name}-ms", type=float, default=default,
                            help=what)
    args = parser.parse_args()
    print(json.dumps({"on": makespan(args, True), "off": makespan(args, False)}))


if __name__ == "__main__":
    main()
