#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The paper's tables on this machine: heat and fwi with UMT off and on.

Storage: the disk as it is, and one that a cgroup's throttle makes slow.
Nodes: one rank on all CPUs; or two ranks on half of them each, in network
namespaces that a slow link joins.  Off and on alternate within a round.

Beside each gain stands its ceiling: what a run would gain that overlaps its
computing, its disk and its network completely, so that it takes as long as the
slowest of them alone.  Each of the three is measured in the same rounds.

Owns no application: what they cost they tell themselves, as JSON.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# By application and storage: sizes for which disk and CPUs take about as long
# as each other on a small machine.
SIZES = {
    "heat": {
        "disk": "--rows 2048 --cols 2048 --block 256 --iterations 120 "
                "--every 8",
        "slow": "--rows 2048 --cols 2048 --block 256 --iterations 120 "
                "--every 24",
    },
    "fwi": {
        "disk": "-x 96 -y 96 -z 96 --steps 24 --every 2",
        "slow": "-x 96 -y 96 -z 96 --steps 24 --every 8",
    },
}
SLOW_MIB = 60  # a second, each way
LINK = "rate 200mbit burst 64kb latency 50ms"


def fail(doing, why):
    sys.exit(f"bench-umt: {doing}: {why}")


def root(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        fail(" ".join(command), done.stderr.strip())


class Disk:
    """The folder's disk, or the same with a throttle on who runs there."""

    def __init__(self, folder, slow):
        self.slow, self.group = slow, None
        status = os.stat(folder)
        self.device = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
        if slow:
            self.group = f"/sys/fs/cgroup/blkio/ktask-bench-{os.getpid()}"

    def __enter__(self):
        if not self.group:
            return self
        try:
            os.mkdir(self.group)
            for way in "read", "write":
                with open(f"{self.group}/blkio.throttle.{way}_bps_device",
                          "w") as file:
                    file.write(f"{self.device} {SLOW_MIB << 20}")
        except OSError as error:
            fail("slowing the disk down", error)
        return self

    def __exit__(self, *_):
        if self.group:
            os.rmdir(self.group)

    def enter(self):
        """In a child, before it becomes the command."""
        if self.group:
            with open(f"{self.group}/cgroup.procs", "w") as file:
                file.write(str(os.getpid()))


class Nodes:
    """Two network namespaces, joined by a link; or none for one node."""

    def __init__(self, nr):
        self.names = [f"ktask{os.getpid()}-{i}" for i in range(nr)]
        self.names = self.names if nr > 1 else []

    def __enter__(self):
        for i, name in enumerate(self.names):
            root("ip", "netns", "add", name)
            root("ip", "-n", name, "link", "set", "lo", "up")
        if self.names:
            a, b = self.names
            root("ip", "link", "add", "node", "netns", a, "type", "veth",
                 "peer", "name", "node", "netns", b)
        for i, name in enumerate(self.names):
            root("ip", "-n", name, "addr", "add", f"10.77.0.{i + 1}/24",
                 "dev", "node")
            root("ip", "-n", name, "link", "set", "node", "up")
            root("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev",
                 "node", "root", "tbf", *LINK.split())
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def wrap(self, command):
        if not self.names:
            return command
        agent = (f"{HERE}/enter-node {self.names[0]} {self.names[1]}")
        return ["ip", "netns", "exec", self.names[0], "mpirun",
                "--allow-run-as-root", "--host", "10.77.0.1,10.77.0.2",
                "--mca", "plm_rsh_agent", agent, "--bind-to", "none",
                "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include",
                "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24",
                "-np", "2", f"{HERE}/on-half"] + command


class Watch(threading.Thread):
    """CPU and disk use of the machine, ten times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.rows, self.stop = [], threading.Event()

    @staticmethod
    def sample():
        with open("/proc/stat") as file:
            cpu = [int(word) for word in file.readline().split()[1:9]]
        sectors = 0
        with open("/proc/diskstats") as file:
            for line in file:
                words = line.split()
                if os.path.exists(f"/sys/block/{words[2]}/device"):
                    sectors += int(words[5]) + int(words[9])
        return time.monotonic(), sum(cpu), cpu[3] + cpu[4], sectors

    def run(self):
        first = last = self.sample()
        while not self.stop.wait(0.1):
            now = self.sample()
            ticks = max(now[1] - last[1], 1)
            self.rows.append((now[0] - first[0],
                              100 * (1 - (now[2] - last[2]) / ticks),
                              (now[3] - last[3]) / 2048 / (now[0] - last[0])))
            last = now


def run(command, disk, cpus=None):
    def before():
        disk.enter()
        if cpus:
            os.sched_setaffinity(0, cpus)
    done = subprocess.run(command, capture_output=True, text=True,
                          preexec_fn=before, timeout=600)
    if done.returncode:
        fail(" ".join(command), done.stderr.strip() or done.returncode)
    return json.loads(done.stdout.splitlines()[-1])


def io_seconds(folder, disk, result, block):
    """The same bytes by the same disk, as many at a time as it likes."""
    script = f"{HERE}/only-io.py"
    told = run([script, folder, str(result["bytes_written"]),
                str(result["bytes_read"]), str(block)], disk)
    return told["seconds"]


def picture(path, rows, title):
    """Two curves by gnuplot, where it is installed."""
    if not shutil.which("gnuplot"):
        return
    data = "\n".join(" ".join(f"{v:.3f}" for v in row) for row in rows)
    plot = (f"set terminal svg size 800,300; set output '{path}'\n"
            f"set title '{title}'; set xlabel 's'; set ylabel 'CPU %'\n"
            "set yrange [0:105]; set y2label 'MiB/s'; set y2tics\n"
            "set y2range [0:*]; set key below\n"
            f"$data << END\n{data}\nEND\n"
            "plot $data u 1:2 w l lw 2 t 'CPU', "
            "$data u 1:3 axes x1y2 w l t 'disk'\n")
    subprocess.run(["gnuplot"], input=plot, text=True, check=False)


def one_case(args, app, storage, buffered, nr_nodes, folder):
    size = SIZES[app][storage].split()
    command = [f"{args.build}/{app}", "--json", "--dir", folder] + size
    if buffered:
        command.append("--buffered")
    alone = command + ["--every", "0"]
    block = 512 << 10 if app == "heat" else 96 * 96 * 4 * 9
    off, on, compute, disk_only = [], [], [], []
    rows = {}
    with Disk(folder, storage == "slow") as disk, Nodes(nr_nodes) as nodes:
        for turn in range(args.rounds):
            for name, results in ("off", off), ("on", on):
                flags = ["--no-umt"] if name == "off" else []
                watch = Watch()
                watch.start()
                results.append(run(nodes.wrap(command + flags), disk))
                watch.stop.set()
                watch.join()
                rows[name] = watch.rows
            # Neither network nor disk.
            compute.append(run(alone, Disk(folder, False))["seconds"])
            disk_only.append(0 if buffered else
                             io_seconds(folder, disk, off[0], block))
    for name, samples in rows.items():
        where = "page cache" if buffered else storage
        picture(f"{args.build}/umt-{app}-{storage}-{nr_nodes}-{name}"
                f"{'-buffered' if buffered else ''}.svg", samples,
                f"{app}, {nr_nodes} node(s), {where}, UMT {name}")

    def median(results, key="seconds"):
        return statistics.median(r[key] for r in results)

    gain = statistics.median(a["seconds"] / b["seconds"]
                             for a, b in zip(off, on))
    slowest = [max(pair) for pair in zip(compute, disk_only)]
    ceiling = statistics.median(a["seconds"] / b
                                for a, b in zip(off, slowest))
    if len({r["sum"] for r in off + on}) != 1:
        fail(app, "results differ")
    return {
        "app": app, "storage": "page cache" if buffered else storage,
        "nodes": nr_nodes, "backend": on[0]["umt"],
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
        "crowded_on": median(on, "crowded_percent"),
        "compute_seconds": statistics.median(compute),
        "disk_seconds": statistics.median(disk_only),
        "gain": gain, "ceiling": ceiling,
    }


def table(rows):
    print(f"{'':6}{'storage':11}{'nodes':>5}{'off':>8}{'on':>8}{'gain':>7}"
          f"{'ceiling':>9}{'CPU off':>9}{'CPU on':>8}{'MiB/s':>7}{'on':>6}"
          f"{'crowded':>9}{'switches':>10}{'on':>8}")
    for r in rows:
        print(f"{r['app']:6}{r['storage']:11}{r['nodes']:5}"
              f"{r['seconds_off']:7.2f}s{r['seconds_on']:7.2f}s"
              f"{r['gain']:6.2f}x{r['ceiling']:8.2f}x"
              f"{r['cpu_off']:8.1f}%{r['cpu_on']:7.1f}%"
              f"{r['mib_off']:7.0f}{r['mib_on']:6.0f}"
              f"{r['crowded_on']:8.2f}%{r['switches_off']:10.0f}"
              f"{r['switches_on']:8.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="words, of which each must "
                        "be in APP/STORAGE/NODES, such as heat/slow")
    parser.add_argument("--output", help="file for all figures, as JSON")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    if os.geteuid():
        fail("slowing disk and network down", "only root may")
    rows = []
    cases = [(app, storage, buffered, nodes)
             for app in SIZES for nodes in (1, 2)
             for storage, buffered in (("disk", False), ("slow", False),
                                       ("disk", True))]
    for app, storage, buffered, nodes in cases:
        name = f"{app}/{'cache' if buffered else storage}/{nodes}"
        if any(word not in name for word in args.only.split()):
            continue
        if nodes > 1 and not shutil.which("mpirun"):
            print(f"{name}: no mpirun", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(dir=args.build) as folder:
            rows.append(one_case(args, app, storage, buffered, nodes, folder))
        table(rows[-1:] if len(rows) > 1 else rows)
    if len(rows) > 1:
        print()
        table(rows)
    if args.output:
        with open(args.output, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
