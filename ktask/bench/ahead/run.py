#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Programs that touch memory, plain and in the ways of having it made before: one table.

    ktask/bench/ahead/run.py BUILD [--rounds N] [--mib N] [--limit S] [--machine NAME]
        [--output FILE] [WORD...]

A row is a program, a side a way of running it (sides.py, rows.py).  In a round all sides
of a row run, one after the other, each round begins with another, and ratios are of
one round.  What the host of a virtual machine took back is fetched before each run,
untimed.  A row ends after its rounds, or with the round in which its limit of seconds
passes.  WORDs choose rows with one of them in their names.

FILE (BUILD/bench-ahead.json) has every run; rows that it has from before are kept, so
that rows can be measured one by one, and on several machines.  `make results` makes the
table of bench/data/ahead.json, which has the same format.

A program that is not installed is told, and so it stands in FILE.  On a busy machine the
figures are worth little: the load stands beside them.
"""
import argparse
import datetime
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import rows
import sides


def fetch_memory(ktask, mib):
    subprocess.run([ktask, "populate", "--anon", f"{mib}M"], check=True,
                   stdout=subprocess.DEVNULL)


def measure(row, options, ktask):
    """The seconds and MiB of each side, by rounds."""
    names = list(row.sides)
    runs = {name: [] for name in names}
    began = time.monotonic()
    for index in range(options.rounds):
        for turn in range(len(names)):
            name = names[(index + turn) % len(names)]
            fetch_memory(ktask, row.fetch_mib)
            runs[name].append(row.run(name))
        if time.monotonic() - began > options.limit:
            print(f"  {row.name}: limit of {options.limit} s after round {index + 1}")
            break
    return runs


def record(row, options, runs, load):
    found = {
        "claim": row.name, "unit": row.unit, "goals": row.goals, "memory": row.memory_goal,
        "mib": options.mib, "machine": options.machine, "date": datetime.date.today().isoformat(),
        "load": [load, round(os.getloadavg()[0], 2)], "values": {}, "most_mib": {},
    }
    for name, values in runs.items():
        found["values"][name] = [round(value[0], 4) for value in values]
        if values[0][1]:
            found["most_mib"][name] = [round(value[1], 1) for value in values]
    return found


def ratios(found, of, name):
    """Of each round: how many times as fast, or by how much more it takes."""
    pairs = zip(found["values"][of], found["values"][name])
    if found["unit"] == "x":
        return [base / value for base, value in pairs]
    return [value - base for base, value in pairs]


def print_row(found):
    for name, values in found["values"].items():
        some = ratios(found, "plain", name)
        memory = found["most_mib"].get(name)
        print(f"{found['claim']:44} {name:9} {statistics.median(values):9.4f}",
              f"{statistics.median(some):8.3f} ({min(some):.3f} to {max(some):.3f})",
              f"{statistics.median(memory) if memory else 0:9.1f} MiB", flush=True)


def read_kept(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        return json.load(file)["rows"]


def write_all(path, found):
    """Rows in the order of rows.py; those that are no more stay at the end."""
    order = {name: index for index, name in enumerate(rows.NAMES)}
    found.sort(key=lambda row: order.get(row["claim"], len(order)))
    text = json.dumps({"title": rows.TITLE, "command": "make bench-ahead",
                       "sides": sides.TITLES, "rows": found}, indent=1)
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text + "\n")
    os.rename(path + ".new", path)


def measure_row(name, options, build):
    """Its files are gone before the next one needs memory."""
    load = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ktask-ahead-") as directory:
        row = rows.Makers(build, directory, options.mib).make(name)
        if row is None:
            print(f"{name:44} not installed", flush=True)
            return {"claim": name, "lacks": "not installed"}
        found = record(row, options, measure(row, options, os.path.join(build, "ktask")), load)
    print_row(found)
    return found


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mib", type=int, default=4096)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--machine", default="this one", help="a key of machines.json")
    parser.add_argument("--output")
    parser.add_argument("--list", action="store_true", help="the names of all rows")
    parser.add_argument("words", nargs="*")
    return parser.parse_intermixed_args()


def main():
    options = read_options()
    # Its directory takes memory until it is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build = os.path.abspath(options.build)
    output = options.output or os.path.join(build, "bench-ahead.json")
    if options.list:
        print("\n".join(rows.NAMES))
        return
    wanted = [name for name in rows.NAMES
              if not options.words or any(word in name for word in options.words)]
    if not wanted:
        sys.exit("ktask: bench: no row has such a word in its name: --list has them")
    print(f"{os.cpu_count()} CPUs, Linux {os.uname().release}, {options.mib} MiB,",
          f"{options.rounds} rounds, load {os.getloadavg()[0]:.2f}")
    kept = read_kept(output)
    for name in wanted:
        found = measure_row(name, options, build)
        kept = [other for other in kept if other["claim"] != name] + [found]
        write_all(output, kept)
    print(f"load behind: {os.getloadavg()[0]:.2f}; all of it in {output}")


main()
