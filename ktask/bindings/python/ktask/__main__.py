# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""python -m ktask: what the package can tell and do without a program."""

from __future__ import annotations

import argparse
import sys

import ktask


def show_limits(_: argparse.Namespace) -> None:
    for limit in ktask.limits():
        print(f"{limit.threads:6}  {limit.name:10} {limit.why}")


def show_jobs(_: argparse.Namespace) -> None:
    for job in ktask.jobs():
        share = 100 * job.units_done // job.units_total if job.units_total else 0
        print(f"{job.pid:8} {job.name:15} {job.helpers:3} helpers {share:3} %")
    now = ktask.helpers()
    print(f"{now.used} of {now.limit} helpers work")


def warm_files(options: argparse.Namespace) -> None:
    result = ktask.warm(options.file, direct=options.direct, threads=options.threads)
    print(f"{result.bytes} bytes, {result.threads} threads, "
          f"{result.wall_ns / 1e9:.3f} s")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ktask",
        description="Large calls that keep one thread in the kernel, done by several.",
    )
    parser.add_argument("--version", action="version", version=ktask.__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    limits = commands.add_parser("limits", help="what would limit a call now, and why")
    limits.set_defaults(run=show_limits)
    jobs = commands.add_parser("jobs", help="jobs that run on this machine")
    jobs.set_defaults(run=show_jobs)
    warm = commands.add_parser("warm", help="read files into the page cache")
    warm.add_argument("file", nargs="+")
    warm.add_argument("--direct", action="store_true", help="past the page cache")
    warm.add_argument("--threads", type=int, default=0, metavar="N")
    warm.set_defaults(run=warm_files)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        options.run(options)
    except (OSError, ValueError) as error:
        print(f"ktask: {error}", file=sys.stderr)
        for failure in getattr(error, "failures", ())[1:]:
            print(f"ktask: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
