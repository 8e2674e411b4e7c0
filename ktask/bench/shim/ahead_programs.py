#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Programs that nobody here wrote: their whole time as a user sees it, plain and under
`ktask run`, and the most memory that they had.

    ktask/bench/shim/ahead_programs.py BUILD [ROUNDS [MIB]]

The ways of running take turns, each round begins with another; what the host of this
machine took back is fetched before each run, untimed.  Prints medians, and the median
of the ratios of each round to the plain program; the same goes to
BUILD/bench-ahead-programs.json.  A program that is not installed is told and left out.
"""
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TUNABLE = "GLIBC_TUNABLES"
MODES = ("plain", "small", "on", "tunable")

JAVA = """
public class Fill {
    public static void main(String[] arguments) {
        byte[][] blocks = new byte[Integer.parseInt(arguments[0])][];
        for (int i = 0; i < blocks.length; i++)
            blocks[i] = new byte[1 << 20];
        System.exit(blocks[blocks.length - 1].length == 1 << 20 ? 0 : 1);
    }
}
"""

CPP = """
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <unordered_map>
int main() { std::regex r("a+(b|c)*"); std::map<std::string, int> m; std::unordered_map<int, int> u;
    std::cout << std::regex_match(std::string("ab"), r) << m.size() << u.size(); }
"""

HASH = """
table = {}
for i in range(%d):
    table[i * 2654435761 %% 4294967291] = i
"""

NODE = """
const blocks = [];
for (let i = 0; i < %d; i++)
    blocks.push(new Float64Array(131072).fill(i));
const texts = {};
for (let i = 0; i < 300000; i++)
    texts['key' + i] = 'value' + i;
"""

SQL = """
create table numbers (n integer primary key, text);
with recursive c(n) as (select 1 union all select n + 1 from c where n < 600000)
    insert into numbers select n, hex(n) || ' is a number' from c;
create index by_text on numbers (text);
select count(*) from numbers where text like 'A%';
"""

# One statement a line, as a server without clients reads them.
FILL_TABLE = """create database texts;
use texts;
create table texts.numbered (n int primary key, text char(250)) engine=innodb character set latin1;
insert into texts.numbered select seq, concat(md5(seq), repeat('y', 210)) from seq_1_to_%d;
"""
SCAN_TABLE = "select count(*) from texts.numbered where text like '%q%';\n"


def numpy_program(python, what):
    return [python, "-c", "import numpy; " + what]


def find_java():
    return shutil.which("java") if shutil.which("javac") else None


class Programs:
    """What is run, in a directory of its own on tmpfs."""

    def __init__(self, directory, mib):
        self.directory, self.mib = directory, mib

    def path(self, name, text=None):
        path = os.path.join(self.directory, name)
        if text is not None:
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        return path

    def numpy(self):
        python = "/usr/bin/python3"
        if subprocess.run([python, "-c", "import numpy"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            return {}
        words = self.mib << 17
        path = self.path("numbers")
        with open(path, "wb") as file:
            for _ in range(self.mib):
                file.write(bytes(1 << 20))
        return {
            "numpy ones": numpy_program(python, f"numpy.ones({words})"),
            "numpy arange": numpy_program(python, f"numpy.arange({words})"),
            "numpy concatenate": numpy_program(
                python, f"a = numpy.ones({words // 2}); numpy.concatenate((a, a))"),
            "numpy fromfile": numpy_program(python, f"numpy.fromfile('{path}')"),
        }

    def java(self):
        java = find_java()
        if not java:
            return {}
        subprocess.run(["javac", "-d", self.directory, self.path("Fill.java", JAVA)], check=True)
        found = {}
        for name, collector in (("serial", "Serial"), ("parallel", "Parallel")):
            start = [java, f"-XX:+Use{collector}GC", f"-Xms{self.mib}m", f"-Xmx{self.mib}m"]
            fill = ["-cp", self.directory, "Fill", str(self.mib // 2)]
            found[f"JVM {name}, heap touched before"] = start + ["-XX:+AlwaysPreTouch"] + fill
            found[f"JVM {name}"] = start + fill
        return found

    def database(self):
        """A server that reads a table into buffers that it has not touched before.  The
        buffers of PostgreSQL are shared memory, which nobody watches."""
        server = shutil.which("mariadbd", path=os.environ["PATH"] + ":/usr/sbin")
        if not server:
            return {}
        data = self.path("database")
        os.mkdir(data)
        words = [server, "--no-defaults", "--bootstrap", "--user=" + (os.environ.get("USER") or str(os.getuid())),
                 "--datadir=" + data, f"--innodb-buffer-pool-size={self.mib}M",
                 "--innodb-flush-method=fsync", "--innodb-buffer-pool-load-at-startup=0",
                 "--innodb-buffer-pool-dump-at-shutdown=0", "--innodb-doublewrite=0"]
        with open(self.path("fill.sql", FILL_TABLE % (self.mib << 11)), "rb") as fill:
            if subprocess.run(words, stdin=fill, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode:
                print("MariaDB: the table cannot be filled")
                return {}
        scan = f"exec {shlex.join(words)} <{shlex.quote(self.path('scan.sql', SCAN_TABLE))} 2>/dev/null"
        return {"MariaDB, first scan of a table": ["sh", "-c", scan]}

    def mixed(self):
        lines = self.path("lines")
        with open(lines, "w", encoding="ascii") as file:
            word = 1
            for _ in range(self.mib << 11):
                word = (word * 1664525 + 1013904223) % (1 << 32)
                file.write(f"{word:010d} a line of text to be sorted\n")
        found = {
            "sort": ["sort", "-S", f"{self.mib}M", "-o", "/dev/null", lines],
            "g++": ["g++", "-O2", "-c", "-o", "/dev/null", self.path("program.cc", CPP)],
            "sqlite3": ["sqlite3", ":memory:", SQL],
            "node": ["node", "-e", NODE % self.mib],
            "hash table": ["/usr/bin/python3", "-c", HASH % (self.mib << 12)],
            "true": ["true"],
        }
        return {name: words for name, words in found.items() if shutil.which(words[0])}

    def all(self):
        found = {**self.numpy(), **self.java(), **self.database(), **self.mixed()}
        for name in ("numpy ones", "JVM serial", "MariaDB, first scan of a table", "sort",
                     "g++", "sqlite3", "node"):
            if name not in found:
                print(f"not installed: {name}")
        return found


def run_once(build, mode, words, mib):
    """Seconds and MiB of one run."""
    environment = dict(os.environ)
    ktask = os.path.join(build, "ktask")
    subprocess.run([ktask, "populate", "--anon", f"{3 * mib}M"], check=True,
                   stdout=subprocess.DEVNULL)
    if mode == "tunable":
        environment[TUNABLE] = "glibc.malloc.hugetlb=1"
    elif mode != "plain":
        words = [ktask, "run", f"--ahead={mode}", "--"] + words
    with open(os.devnull, "r+b") as null:
        begin = time.monotonic()
        child = subprocess.Popen(words, env=environment, stdin=null, stdout=null)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"ktask: bench: {words[0]} ({mode}) ended with {child.returncode}")
    return seconds, usage.ru_maxrss / 1024


def measure(build, rounds, words, mib):
    runs = {mode: [] for mode in MODES}
    for index in range(rounds):
        for turn in range(len(MODES)):
            mode = MODES[(index + turn) % len(MODES)]
            runs[mode].append(run_once(build, mode, words, mib))
    return runs


def summarise(runs):
    found = {}
    for mode in MODES:
        pairs = zip(runs["plain"], runs[mode])
        found[mode] = {
            "seconds": round(statistics.median(run[0] for run in runs[mode]), 3),
            "ratio": round(statistics.median(plain[0] / run[0] for plain, run in pairs), 3),
            "mib": round(statistics.median(run[1] for run in runs[mode]), 1),
        }
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: ahead_programs.py BUILD [ROUNDS [MIB]]")
    build = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    mib = int(sys.argv[3]) if len(sys.argv) > 3 else 1024
    results = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        print(f"{os.cpu_count()} CPUs, Linux {os.uname().release}, {mib} MiB, {rounds} rounds,",
              "load %.2f" % os.getloadavg()[0])
        print(f"{'program':30} {'mode':8} {'seconds':>8} {'ratio':>7} {'MiB':>8}")
        for name, words in Programs(directory, mib).all().items():
            results[name] = summarise(measure(build, rounds, words, mib))
            for mode, row in results[name].items():
                print(f"{name:30} {mode:8} {row['seconds']:8.3f} {row['ratio']:7.3f} {row['mib']:8.1f}",
                      flush=True)
        print("load behind: %.2f" % os.getloadavg()[0])
    with open(os.path.join(build, "bench-ahead-programs.json"), "w", encoding="ascii") as file:
        json.dump({"mib": mib, "rounds": rounds, "programs": results}, file, indent=1)
        file.write("\n")


main()
