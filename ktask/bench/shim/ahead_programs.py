#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Programs that nobody here wrote: their whole time as a user sees it, plain and under
`ktask run`, and the most memory that they had.

    ktask/bench/shim/ahead_programs.py BUILD [ROUNDS [MIB [WORD]]]

The ways of running take turns, each round begins with another; what the host of this
machine took back is fetched before each run, untimed.  Prints medians, and the median
of the ratios of each round to the plain program; the same goes to
BUILD/bench-ahead-programs.json.  A program that is not installed is told and left out;
so are those without WORD in their names.

The ceiling is the ratio of the same program with all its memory present, where there is a
way to run it so: NumPy reuses huge pages that it touched before, the heap of a JVM is made
by `ktask run --prefault=wait`.  The time that this took is not counted.
"""
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TUNABLE = "GLIBC_TUNABLES"
MODES = ("plain", "small", "on", "tunable")
PRESENT = "present"
# The allocator keeps what is freed, and returns it again.
KEEP = "glibc.malloc.mmap_threshold={0}:glibc.malloc.trim_threshold={0}".format(1 << 40)

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


# Says how long the making of memory took that the program then finds present.
NUMPY_PRESENT = """
import sys, time, numpy
begin = time.monotonic()
block = numpy.empty(%d)
block.fill(0)
del block
print(time.monotonic() - begin, file=sys.stderr)
"""


def numpy_program(python, what):
    return [python, "-c", "import numpy; " + what]


def numpy_present(words, nr_words):
    """A little more than the program needs."""
    return {"words": words[:2] + [NUMPY_PRESENT % (nr_words + nr_words // 20) + words[2]],
            "environment": {TUNABLE: KEEP}, "made": r"^([0-9.]+)$"}


def prefaulted(build, words):
    return {"words": [os.path.join(build, "ktask"), "run", "--prefault=wait", "--report", "--"] + words,
            "environment": {}, "made": r"^ktask: prefault: .* bytes, ([0-9.]+) s,"}


def find_java():
    return shutil.which("java") if shutil.which("javac") else None


class Programs:
    """What is run, in a directory of its own on tmpfs."""

    def __init__(self, build, directory, mib):
        self.build, self.directory, self.mib = build, directory, mib
        self.present = {}

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
        found = {
            "numpy ones": numpy_program(python, f"numpy.ones({words})"),
            "numpy arange": numpy_program(python, f"numpy.arange({words})"),
            "numpy concatenate": numpy_program(
                python, f"a = numpy.ones({words // 2}); numpy.concatenate((a, a))"),
            "numpy fromfile": numpy_program(python, f"numpy.fromfile('{path}')"),
        }
        for name, program in found.items():
            halves = 3 if "concatenate" in name else 2
            self.present[name] = numpy_present(program, words * halves // 2)
        return found

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
        for name, words in found.items():
            self.present[name] = prefaulted(self.build, words)
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


def seconds_made(said, pattern, words):
    """What the making of memory took, as the program said."""
    found = re.search(pattern, said, re.MULTILINE)
    if not found:
        sys.exit(f"ktask: bench: {words[0]} (present) said nothing of its memory: {said}")
    return float(found.group(1))


def run_once(build, mode, words, mib):
    """Seconds and MiB of one run."""
    environment = dict(os.environ)
    made = None
    if mode == PRESENT:
        environment.update(words["environment"])
        words, made = words["words"], words["made"]
    ktask = os.path.join(build, "ktask")
    subprocess.run([ktask, "populate", "--anon", f"{3 * mib}M"], check=True,
                   stdout=subprocess.DEVNULL)
    if mode == "tunable":
        environment[TUNABLE] = "glibc.malloc.hugetlb=1"
    elif mode not in ("plain", PRESENT):
        words = [ktask, "run", f"--ahead={mode}", "--"] + words
    with open(os.devnull, "r+b") as null, tempfile.TemporaryFile("w+") as said:
        begin = time.monotonic()
        child = subprocess.Popen(words, env=environment, stdin=null, stdout=null,
                                 stderr=said if made else None)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begin
        said.seek(0)
        if made:
            seconds -= seconds_made(said.read(), made, words)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"ktask: bench: {words[0]} ({mode}) ended with {child.returncode}")
    return seconds, usage.ru_maxrss / 1024


def measure(build, rounds, words, present, mib):
    modes = MODES + ((PRESENT,) if present else ())
    runs = {mode: [] for mode in modes}
    for index in range(rounds):
        for turn in range(len(modes)):
            mode = modes[(index + turn) % len(modes)]
            runs[mode].append(run_once(build, mode, present if mode == PRESENT else words, mib))
    return runs


def summarise(runs):
    found = {}
    for mode in runs:
        pairs = zip(runs["plain"], runs[mode])
        found[mode] = {
            "seconds": round(statistics.median(run[0] for run in runs[mode]), 3),
            "ratio": round(statistics.median(plain[0] / run[0] for plain, run in pairs), 3),
            "mib": round(statistics.median(run[1] for run in runs[mode]), 1),
        }
    found["ceiling"] = found[PRESENT]["ratio"] if PRESENT in found else None
    return found


def print_rows(name, rows):
    ceiling = rows["ceiling"]
    for mode, row in rows.items():
        if mode != "ceiling":
            print(f"{name:30} {mode:8} {row['seconds']:8.3f} {row['ratio']:7.3f}",
                  f"{row['mib']:8.1f} {ceiling if ceiling else '-':>8}", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: ahead_programs.py BUILD [ROUNDS [MIB [WORD]]]")
    build = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    mib = int(sys.argv[3]) if len(sys.argv) > 3 else 1024
    word = sys.argv[4] if len(sys.argv) > 4 else ""
    results = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        print(f"{os.cpu_count()} CPUs, Linux {os.uname().release}, {mib} MiB, {rounds} rounds,",
              "load %.2f" % os.getloadavg()[0])
        print(f"{'program':30} {'mode':8} {'seconds':>8} {'ratio':>7} {'MiB':>8} {'ceiling':>8}")
        programs = Programs(build, directory, mib)
        for name, words in programs.all().items():
            if word not in name:
                continue
            runs = measure(build, rounds, words, programs.present.get(name), mib)
            results[name] = summarise(runs)
            print_rows(name, results[name])
        print("load behind: %.2f" % os.getloadavg()[0])
    with open(os.path.join(build, "bench-ahead-programs.json"), "w", encoding="ascii") as file:
        json.dump({"mib": mib, "rounds": rounds, "programs": results}, file, indent=1)
        file.write("\n")


main()
