#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What heat's graph of tasks allows: its makespan on cores that lose nothing.

A block that is in a checkpoint is written before its neighbours may begin, so
only a few sweeps can go on beside a slow write, however good the runtime; with
"behind" a copy of it is written, and only the checkpoints that may be under way
at once limit how far the sweeps go on.  The figures of the machine are given
(run.py measures them); the disk takes one block after another.  Prints JSON:
seconds without cores that block (on) and with them (off).
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


class Play:
    """One run of the graph."""

    def __init__(self, args, umt):
        self.args, self.umt = args, umt
        self.ready, self.events, self.waits = [], [], {}
        self.free, self.disk, self.now = args.cores, 0.0, 0.0
        self.made = 0
        self.written = {}  # blocks, by checkpoint
        self.sealed = 0.0

    def is_written(self, task):
        return self.args.every and task[0] % self.args.every == 0

    def gate(self, sweep):
        """The checkpoint that is whole before the sweep is made; or < 0"""
        if not self.args.every:
            return -1
        return (sweep - 1) // self.args.every - self.args.pending

    def tell(self, when, what, task):
        self.made += 1
        heapq.heappush(self.events, (when, self.made, what, task))

    def add(self, first, what, task):
        """Checkpoints first, then the newest: as the runtime takes them."""
        self.made += 1
        heapq.heappush(self.ready, (first, -self.made, what, task))

    def less(self, task):
        if task not in self.waits:
            self.waits[task] = (before(*task, self.args.blocks)
                                + (self.gate(task[0]) >= 0))
        self.waits[task] -= 1
        if self.waits[task] <= 0:
            self.add(1 - bool(self.is_written(task)), self.compute, task)

    def complete(self, task):
        for other in after(*task, self.args):
            self.less(other)

    def compute(self, task):
        more = self.args.pack_ms if self.is_written(task) else 0
        self.free -= 1
        self.tell(self.now + self.args.block_ms + more, self.computed, task)

    def computed(self, task):
        self.free += 1
        if not self.is_written(task):
            self.complete(task)
        elif self.args.behind:
            self.complete(task)
            self.add(-1, self.write, task)
        else:
            self.write(task)

    def write(self, task):
        self.free -= not self.umt
        self.disk = max(self.disk, self.now) + self.args.write_ms
        self.tell(self.disk + self.args.latency_ms, self.was_written, task)

    def was_written(self, task):
        self.free += not self.umt
        number = task[0] // self.args.every - 1
        self.written[number] = self.written.get(number, 0) + 1
        if self.written[number] == self.args.blocks ** 2:
            self.sealed = max(self.sealed, self.now) + self.args.seal_ms
            self.tell(self.sealed, self.open_gate, number)
        if not self.args.behind:
            self.complete(task)

    def open_gate(self, number):
        for sweep in range(1, self.args.sweeps + 1):
            if self.gate(sweep) == number:
                for index in range(self.args.blocks ** 2):
                    self.less((sweep, *divmod(index, self.args.blocks)))

    def run(self):
        self.waits[1, 0, 0] = 1
        self.less((1, 0, 0))
        while self.ready or self.events:
            while self.free and self.ready:
                *_, what, task = heapq.heappop(self.ready)
                what(task)
            if self.events:
                self.now, _, what, task = heapq.heappop(self.events)
                what(task)
        return self.now / 1e3


def play(**figures):
    """{"on": seconds, "off": seconds}; what is not given is as by default."""
    args = parser().parse_args([])
    vars(args).update(figures)
    return {"on": Play(args, True).run(), "off": Play(args, False).run()}


def parser():
    told = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("cores", 2), ("blocks", 8), ("sweeps", 120),
                          ("every", 5), ("pending", 2)):
        told.add_argument(f"--{name}", type=int, default=default)
    for name, default, what in (
            ("block", 0.26, "CPU time of a block"),
            ("pack", 0.17, "more of it for one that is written"),
            ("write", 0.5, "what the disk takes for a block, of many"),
            ("latency", 0.5, "and until that is told, beside others"),
            ("seal", 0, "and to make a checkpoint whole")):
        told.add_argument(f"--{name}-ms", type=float, default=default,
                          help=what)
    told.add_argument("--behind", action="store_true")
    return told


if __name__ == "__main__":
    print(json.dumps(play(**vars(parser().parse_args()))))
