# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the tables are measured on: a disk that may be slow, nodes that a slow
link may join, what the machine's CPUs and disks do meanwhile.

Owns no figure: run.py and peers.py have the tables.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))

SLOW_MIB = 60  # a second, each way
LINK = "rate 200mbit burst 64kb latency 50ms"


def fail(doing, why):
    sys.exit(f"bench-umt: {doing}: {why}")


class Unable(Exception):
    """This machine has not what a case needs: the others go on."""


def root(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unable(f"{' '.join(command)}: {done.stderr.strip()}")


def write_to(path, text):
    with open(path, "w") as file:
        file.write(text)


def whole_disk(directory):
    """MAJOR:MINOR of the disk of its file system, as throttles want it: not of
    a partition.  OSError where there is none (tmpfs, overlayfs, btrfs)."""
    device = os.stat(directory).st_dev
    place = os.path.realpath(
        f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if os.path.exists(f"{place}/partition"):
        place = os.path.dirname(place)
    with open(f"{place}/dev") as file:
        return file.read().strip()


class Disk:
    """The directory's disk, or the same with a throttle on who runs there: of
    cgroup's version 1 where the machine has that, else of version 2."""

    GROUPS = "/sys/fs/cgroup"

    def __init__(self, directory, slow):
        self.directory, self.slow, self.group = directory, slow, None

    def __enter__(self):
        if not self.slow:
            return self
        first = os.path.isdir(f"{self.GROUPS}/blkio")
        group = f"{self.GROUPS}{'/blkio' * first}/ktask-bench-{os.getpid()}"
        rate = SLOW_MIB << 20
        try:
            device = whole_disk(self.directory)
            if not first:
                write_to(f"{self.GROUPS}/cgroup.subtree_control", "+io")
            os.mkdir(group)
            self.group = group
            if first:
                for way in "read", "write":
                    write_to(f"{group}/blkio.throttle.{way}_bps_device",
                             f"{device} {rate}")
            else:
                write_to(f"{group}/io.max",
                         f"{device} rbps={rate} wbps={rate}")
        except OSError as error:
            self.__exit__()
            raise Unable(f"slowing the disk down: {error}") from error
        return self

    def __exit__(self, *_):
        if self.group:
            os.rmdir(self.group)

    def enter(self):
        """In a child, before it becomes the command."""
        if self.group:
            write_to(f"{self.group}/cgroup.procs", str(os.getpid()))


class Nodes:
    """Two network namespaces, joined by a link; or none for one node."""

    def __init__(self, nr):
        self.names = [f"ktask{os.getpid()}-{i}" for i in range(nr)]
        self.names = self.names if nr > 1 else []

    def join(self):
        for name in self.names:
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

    def __enter__(self):
        if self.names and not shutil.which("mpirun"):
            raise Unable("no mpirun")
        try:
            self.join()
        except (Unable, OSError) as error:
            self.__exit__()
            raise Unable(error) from error
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False,
                           stderr=subprocess.DEVNULL)

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
    """CPU and disk use of the machine, twenty times a second."""

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
        while not self.stop.wait(0.05):
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


def run_apart(command, disk):
    """The command twice at once, each on half of the CPUs with a directory of its
    own: what two nodes would cost that share the disk and never talk."""
    cpus = sorted(os.sched_getaffinity(0))
    place = command.index("--dir") + 1
    results = [None, None]

    def one(half):
        mine = command[:]
        mine[place] = f"{command[place]}/{half}"
        os.makedirs(mine[place], exist_ok=True)
        middle = len(cpus) // 2
        results[half] = run(mine, disk,
                            cpus[middle:] if half else cpus[:middle])

    threads = [threading.Thread(target=one, args=(half,)) for half in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if None in results:
        fail(" ".join(command), "one of two at once failed")
    a, b = results
    both = {key: a[key] + b[key] for key in a
            if isinstance(a[key], (int, float))}
    both["seconds"] = max(a["seconds"], b["seconds"])
    both["cpu_percent"] = (100 * both["cpu_seconds"] / both["seconds"]
                           / both["workers"])
    both["overloaded_percent"] /= 2
    both["sum"] = a["sum"] + b["sum"]
    both["umt"] = a["umt"]
    return both


def oversubscribed(command, disk):
    """Of the time of one run more, the percentage in which two workers share a
    core that have both run since they blocked, as the founding paper counts;
    None without perf."""
    script = f"{HERE}/../tasks/overloaded.pl"
    done = subprocess.run([script] + command, capture_output=True, text=True,
                          preexec_fn=disk.enter, timeout=600)
    told = re.search(r"([0-9.]+) % of .*both have run", done.stdout)
    if not told:
        print(f"overloaded.pl: {done.stderr.strip() or 'no figure'}",
              file=sys.stderr)
    return float(told[1]) if told else None


def io_alone(directory, disk, result, block, *flags):
    """The same bytes by the same disk, as many at a time as it likes: seconds,
    and what that takes of the CPUs.  Flags: as only-io.py has them."""
    script = f"{HERE}/only-io.py"
    return run([script, directory, str(result["bytes_written"]),
                str(result["bytes_read"]), str(block)]
               + [flag for flag in flags if flag], disk)


def picture(path, panels, title):
    """CPU and disk over time by gnuplot, where it is installed: a panel for
    each of (name, rows of Watch), one below the other, with the same axes."""
    if not shutil.which("gnuplot"):
        print("no picture of CPU and disk over time: no gnuplot",
              file=sys.stderr)
        return
    end = max(row[0] for _, rows in panels for row in rows)
    most = max(row[2] for _, rows in panels for row in rows)
    plot = (f"set terminal svg size 800,{250 * len(panels) + 50}\n"
            f"set output '{path}'\n"
            f"set multiplot layout {len(panels)},1 title '{title}'\n"
            f"set xrange [0:{end:.3f}]; set xlabel 's'\n"
            "set yrange [0:105]; set ylabel 'CPU %'\n"
            f"set y2range [0:{1.05 * most + 1:.0f}]; set y2label 'MiB/s'\n"
            "set y2tics; set ytics nomirror; set key outside below\n")
    for number, (name, rows) in enumerate(panels):
        data = "\n".join(" ".join(f"{v:.3f}" for v in row) for row in rows)
        plot += (f"$data{number} << END\n{data}\nEND\n"
                 f"plot $data{number} u 1:2 w l lw 2 t '{name}: CPU', "
                 f"$data{number} u 1:3 axes x1y2 w l t '{name}: disk'\n")
    done = subprocess.run(["gnuplot"], input=plot, text=True, check=False)
    if not done.returncode:
        print(f"picture: {path}")


def watched(command, disk, run_it=run):
    """run_it(), and what the machine did meanwhile."""
    watch = Watch()
    watch.start()
    result = run_it(command, disk)
    watch.stop.set()
    watch.join()
    return result, watch.rows
