# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""heat beside the same graph of tasks in other runtimes: the same blocks, the
same checkpoints, the same result.

In each round every program runs once, in turn.  What a peer left as its last
checkpoint heat goes on from, once, and compares with one thread's result.
"""

import os
import statistics
import sys
import tempfile

from machine import Disk, Unable, fail, run

SIZE = {
    "disk": "--rows 2048 --cols 2048 --block 256 --iterations 120 --every 5",
    "slow": "--rows 2048 --cols 2048 --block 256 --iterations 120 --every 24",
}
CASES = [("disk", False), ("slow", False), ("disk", True)]

PEERS = [
    ("ktrt, UMT", "heat", []),
    ("ktrt, no UMT", "heat", ["--no-umt"]),
    ("OpenMP, gcc", "bench/heat-libgomp", []),
    ("OpenMP, clang", "bench/heat-libomp", []),
    ("oneTBB", "bench/heat-tbb", []),
    ("Go", "bench/heat-go", []),
    ("Rust, rayon", "bench/heat-rust", []),
]


def why_missing(program):
    try:
        with open(f"{program}.why") as file:
            return file.read().strip().splitlines()[-1]
    except (OSError, IndexError):
        return "not built"


def read_back(args, name, directory, size):
    """The checkpoint of the last sweep is there and whole."""
    last = int(size[size.index("--iterations") + 1])
    more = ["--restart", "--verify", "--json", "--dir", directory, "--every", "0",
            "--iterations", str(last + 1)]
    told = run([f"{args.build}/heat"] + size + more, Disk(directory, False))
    if not told["what"].endswith(", 1 sweeps"):
        fail(name, f"no checkpoint of sweep {last}: {told['what']}")


def one_case(args, storage, buffered):
    results, missing = {}, {}
    flags = ["--json"] + ["--buffered"] * buffered + SIZE[storage].split()
    with tempfile.TemporaryDirectory(dir=args.build) as directory, \
            Disk(directory, storage == "slow") as disk:
        for turn in range(args.rounds):
            for name, program, more in PEERS:
                program = f"{args.build}/{program}"
                if not os.access(program, os.X_OK):
                    missing[name] = why_missing(program)
                    continue
                for left in os.listdir(directory):
                    os.unlink(f"{directory}/{left}")
                command = [program, "--dir", directory] + flags + more
                results.setdefault(name, []).append(run(command, disk))
                if not turn:
                    read_back(args, name, directory,
                              SIZE[storage].split())
    if len({r["sum"] for rs in results.values() for r in rs}) != 1:
        fail(storage, "results differ")
    return results, missing


def summary(results):
    def median(key):
        return statistics.median(r[key] for r in results)
    return {"seconds": median("seconds"), "cpu_percent": median("cpu_percent"),
            "cpu_seconds": median("cpu_seconds"),
            "mib": median("bytes_written") / 2**20 / median("seconds"),
            "switches": median("switches")}


def table(where, results, missing):
    first = results[PEERS[0][0]]
    print(f"\n{'heat, ' + where:24}{'seconds':>9}{'of ktrt':>9}{'CPU':>7}"
          f"{'CPU s':>8}{'MiB/s':>7}{'switches':>10}")
    rows = {}
    for name, own in results.items():
        ratio = statistics.median(a["seconds"] / b["seconds"]
                                  for a, b in zip(own, first))
        r = rows[name] = dict(summary(own), ratio=ratio)
        print(f"{name:24}{r['seconds']:9.2f}{ratio:8.2f}x"
              f"{r['cpu_percent']:6.1f}%{r['cpu_seconds']:8.2f}"
              f"{r['mib']:7.0f}{r['switches']:10.0f}")
    for name, why in missing.items():
        print(f"{name:24} left out: {why}")
    sys.stdout.flush()
    return rows


def measure(args):
    """All cases that args.only names; their rows by case and peer."""
    told = {}
    for storage, buffered in CASES:
        where = "page cache" if buffered else storage
        name = f"peers/{'cache' if buffered else storage}"
        if any(word not in name for word in args.only.split()):
            continue
        print(f"{name}: {args.rounds} rounds", file=sys.stderr)
        try:
            told[name] = table(where, *one_case(args, storage, buffered))
        except Unable as why:
            print(f"{name}: left out: {why}", file=sys.stderr)
    return told
