#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The paper's tables on this machine: heat and fwi with UMT off and on, then
heat beside the same graph of tasks in other runtimes.

A case is APP/STORAGE/NODES:
  heat, fwi    the application; ktrt/bench/apps/run.py has the sizes
  disk         the disk as it is, by direct I/O; heat writes checkpoints, fwi
               writes snapshots and reads them back
  behind       the same with copies that are written behind the computation
  full         so many files that the disk is saturated
  slow         a disk that a cgroup's throttle makes slow (60 MiB/s)
  cache, slow+cache   the disk, the slow disk through the page cache
  1            one process on all CPUs
  2            two ranks of MPI on half of the CPUs each, in network namespaces
               that a slow link joins
  apart        two runs of half the size on half of the CPUs each, which share
               only the disk
Of each case the runs without UMT ("off") and with it ("on") alternate, one of
each a round, and figures are medians of the rounds.

Columns:
  off, on      seconds; percent of the CPUs' time that the application used;
               MiB a second that it wrote and read; context switches
  gain         off / on, the median of the rounds' ratios
  ceiling      the gain of a run that overlaps everything completely, so that
               it takes as long as the slowest of these alone: computing without
               a file; the disk with the same bytes; the CPUs with the CPU
               seconds of both, divided evenly.  Nothing is copied or summed in
               these, and no block waits for another; measured in each round
  reachable    the gain of a run for which the CPUs have the CPU seconds of the
               run without UMT, divided evenly, and which waits for what the
               graph of tasks makes it wait for (heat on one node: bound.py).
               On two nodes it means nothing: MPI takes turns as it waits
  of it        what share of the column before was reached
  overloaded    part of the runtime's looks at a core that found more than one
               worker ready there
  shared       part of the time for which two workers that had both run shared
               a core, as the paper counts oversubscription (2.25 to 3.2 %
               there); of one run more, on one node, by perf
Of the peers: seconds, their ratio to ktrt with UMT, CPU use, CPU seconds.

CPU and disk use over time, without UMT above and with it below, of the last
round: BUILD/umt-heat-disk-1.svg and so on, by gnuplot.  All figures:
BUILD/bench-umt.json."""

# Owns no application: what they cost they tell themselves, as JSON.  peers.py
# has the other runtimes, machine.py what is measured on, bound.py the play of
# the graph.

import argparse
import json
import os
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
import bound
import peers
from machine import (Disk, Nodes, Unable, fail, io_alone, oversubscribed,
                     picture, run, run_apart, watched)

# By application and storage: sizes for which disk and CPUs take about as long
# as each other on a small machine; "full" is as many files as the application
# can write, so that the disk is the limit: little to win, nothing to be lost.
SIZES = {
    "heat": {
        "disk": "--rows 2048 --cols 2048 --block 256 --iterations 120 "
                "--every 5",
        "slow": "--rows 2048 --cols 2048 --block 256 --iterations 120 "
                "--every 24",
        "full": "--rows 2048 --cols 2048 --block 256 --iterations 40 --every 1",
        "behind": "--rows 2048 --cols 2048 --block 256 --iterations 120 "
                  "--every 5 --behind",
    },
    "fwi": {
        "disk": "-x 96 -y 96 -z 96 --steps 24 --every 2",
        "slow": "-x 96 -y 96 -z 96 --steps 24 --every 8",
        "full": "-x 96 -y 96 -z 96 --steps 24 --every 1",
        "behind": "-x 96 -y 96 -z 96 --steps 24 --every 2 --behind",
    },
}

# What makes a run half as large.
HALF = {"heat": "--rows 1024", "fwi": "-y 48"}


def place(storage, buffered):
    if not buffered:
        return storage
    return "cache" if storage == "disk" else f"{storage}+cache"


def reachable(app, size, nr_nodes, off, compute, disk_only):
    """Seconds that a run cannot take less of, given its CPU seconds."""
    least = max(compute["seconds"], disk_only["seconds"],
                off["cpu_seconds"] / off["workers"])
    if app != "heat" or nr_nodes != 1:
        return least
    given = dict(zip(size, size[1:]))
    rows, block, sweeps, every = (
        int(given[f"--{name}"])
        for name in ("rows", "block", "iterations", "every"))
    blocks = rows // block
    written = sweeps // every * blocks ** 2
    more_cpu = max(off["cpu_seconds"] - compute["cpu_seconds"], 0)
    graph = bound.play(
        cores=off["workers"], blocks=blocks, sweeps=sweeps, every=every,
        behind="--behind" in size,
        block_ms=1e3 * compute["cpu_seconds"] / (sweeps * blocks ** 2),
        pack_ms=1e3 * more_cpu / written,
        write_ms=1e3 * disk_only["seconds"] / written,
        latency_ms=disk_only["latency_ms"],
        seal_ms=2 * (disk_only["latency_ms"] + disk_only["sync_ms"]))
    return max(least, graph["on"])


def one_case(args, app, storage, buffered, nr_nodes, directory):
    size = SIZES[app][storage].split()
    run_it = run
    if nr_nodes == "apart":
        run_it = run_apart
        option, half = HALF[app].split()
        size[size.index(option) + 1] = half
    command = [f"{args.build}/{app}", "--json", "--dir", directory] + size
    if buffered:
        command.append("--buffered")
    alone = command + ["--every", "0"]
    block = 512 << 10 if app == "heat" else 96 * 96 * 4 * 9
    off, on, compute, disk_only = [], [], [], []
    rows = {}
    with Disk(directory, storage == "slow") as disk, \
            Nodes(2 if nr_nodes == 2 else 1) as nodes:
        for turn in range(args.rounds):
            for name, results in ("off", off), ("on", on):
                flags = ["--no-umt"] if name == "off" else []
                result, rows[name] = watched(nodes.wrap(command + flags), disk,
                                             run_it)
                results.append(result)
            # Neither network nor disk.
            compute.append(run_it(alone, Disk(directory, False)))
            # A checkpoint is on the disk in the end, fwi's file needs not be.
            disk_only.append(io_alone(directory, disk, off[0], block,
                                      buffered and "buffered",
                                      app == "heat" and "safe"))
        # The workers of one process; recording costs it some time.
        shared = oversubscribed(command, disk) if nr_nodes == 1 else None
    where = place(storage, buffered)
    picture(f"{args.build}/umt-{app}-{where}-{nr_nodes}.svg",
            [(f"UMT {name}", samples) for name, samples in rows.items()],
            f"{app}, {nr_nodes} node(s), {where}")

    def median(results, key="seconds"):
        return statistics.median(r[key] for r in results)

    gain = statistics.median(a["seconds"] / b["seconds"]
                             for a, b in zip(off, on))
    least = [max(a["seconds"], b["seconds"], (a["cpu_seconds"]
             + b["cpu_seconds"]) / a["workers"])
             for a, b in zip(compute, disk_only)]
    ceiling = statistics.median(a["seconds"] / b for a, b in zip(off, least))
    reach = [reachable(app, size, nr_nodes, *figures)
             for figures in zip(off, compute, disk_only)]
    if len({r["sum"] for r in off + on}) != 1:
        fail(app, "results differ")
    return {
        "app": app, "storage": where, "nodes": nr_nodes,
        "backend": on[0]["umt"],
        "seconds_off": median(off), "seconds_on": median(on),
        "cells_off": median(off, "cells_per_second"),
        "cells_on": median(on, "cells_per_second"),
        "cpu_off": median(off, "cpu_percent"),
        "cpu_on": median(on, "cpu_percent"),
        "mib_off": median([{"seconds": (r["bytes_written"] + r["bytes_read"])
                            / r["seconds"] / 2**20} for r in off]),
        "mib_on": median([{"seconds": (r["bytes_written"] + r["bytes_read"])
                           / r["seconds"] / 2**20} for r in on]),
        "switches_off": median(off, "switches"),
        "switches_on": median(on, "switches"),
        "overloaded_on": median(on, "overloaded_percent"),
        "oversubscribed_on": shared,
        "compute_seconds": median(compute),
        "compute_cpu_seconds": median(compute, "cpu_seconds"),
        "disk_seconds": median(disk_only),
        "disk_cpu_seconds": median(disk_only, "cpu_seconds"),
        "cpu_seconds_off": median(off, "cpu_seconds"),
        "cpu_seconds_on": median(on, "cpu_seconds"),
        "gain": gain, "ceiling": ceiling,
        "reachable": statistics.median(a["seconds"] / b
                                       for a, b in zip(off, reach)),
        "of_reachable": statistics.median(b / a["seconds"] for a, b
                                          in zip(on, reach)),
        "of_ceiling": statistics.median(b / a["seconds"] for a, b
                                        in zip(on, least)),
    }


def table(rows):
    print(f"{'':22}{'seconds':>16}{'':7}{'':16}{'':18}{'CPU':>17}"
          f"{'MiB/s':>13}{'':17}{'switches':>18}\n"
          f"{'':6}{'storage':11}{'nodes':>5}{'off':>8}{'on':>8}{'gain':>7}"
          f"{'ceiling':>9}{'of it':>7}{'reachable':>11}{'of it':>7}"
          f"{'off':>9}{'on':>8}{'off':>7}{'on':>6}"
          f"{'overload':>9}{'shared':>8}{'off':>10}{'on':>8}")
    for r in rows:
        share = r["oversubscribed_on"]
        share = "-" if share is None else f"{share:.2f}%"
        print(f"{r['app']:6}{r['storage']:11}{r['nodes']:>5}"
              f"{r['seconds_off']:7.2f}s{r['seconds_on']:7.2f}s"
              f"{r['gain']:6.2f}x{r['ceiling']:8.2f}x{100 * r['of_ceiling']:6.0f}%"
              f"{r['reachable']:10.2f}x{100 * r['of_reachable']:6.0f}%"
              f"{r['cpu_off']:8.1f}%{r['cpu_on']:7.1f}%"
              f"{r['mib_off']:7.0f}{r['mib_on']:6.0f}"
              f"{r['overloaded_on']:8.2f}%{share:>8}{r['switches_off']:10.0f}"
              f"{r['switches_on']:8.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        prog="make bench-umt BENCH=", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build",
                        help="where the applications are (build)")
    parser.add_argument("--rounds", type=int, default=5,
                        help="of each case (5)")
    parser.add_argument("--only", default="", help="words, of which each must "
                        "be in APP/STORAGE/NODES, such as heat/slow/1, or in "
                        "peers/STORAGE")
    parser.add_argument("--output", help="file for all figures, as JSON")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    rows = []
    cases = [(app, storage, buffered, nodes)
             for app in SIZES for nodes in (1, 2, "apart")
             for storage, buffered in (("disk", False), ("slow", False),
                                       ("full", False), ("behind", False),
                                       ("disk", True), ("slow", True))]
    for app, storage, buffered, nodes in cases:
        name = f"{app}/{place(storage, buffered)}/{nodes}"
        if any(word not in name for word in args.only.split()):
            continue
        print(f"{name}: {args.rounds} rounds", file=sys.stderr)
        try:
            with tempfile.TemporaryDirectory(dir=args.build) as directory:
                rows.append(one_case(args, app, storage, buffered, nodes,
                                     directory))
        except Unable as why:
            print(f"{name}: left out: {why}", file=sys.stderr)
            continue
        table(rows[-1:])
    if len(rows) > 1:
        print("\nAll of these:")
        table(rows)
    beside = peers.measure(args)
    if not rows and not beside:
        fail(f"--only '{args.only}'", "nothing was measured")
    if args.output:
        with open(args.output, "w") as file:
            json.dump({"umt": rows, "peers": beside}, file, indent=1)


if __name__ == "__main__":
    main()
