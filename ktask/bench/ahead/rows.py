# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The programs of the table: how each is run, and what is to be reached.

Nobody here wrote them, but for touch-memory; they are taken as they are installed.  What a
row needs (a file, a table, a server) is made when the row is reached, and on tmpfs.
"""
import os
import shutil
import subprocess

import servers
import sides

TITLE = "Memory made ahead of its touch: unmodified programs, each against its ceiling"

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
PYTHON_HASH = """
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
# Says how long the making of memory took that the program then finds present; the
# allocator keeps it.
NUMPY_PRESENT = """
import sys, time, numpy
begin = time.monotonic()
block = numpy.empty(%d)
block.fill(0)
del block
print(time.monotonic() - begin, file=sys.stderr)
"""
KEEP = "glibc.malloc.mmap_threshold={0}:glibc.malloc.trim_threshold={0}".format(1 << 40)
PYTHON = "/usr/bin/python3"

# What makes a row, by its name: (method of Makers, its arguments, goals, memory).  Goals
# are of `ktask run` against a side.
C = "C: malloc, "
TABLE = {
    C + "memset, small pages": ("small", ("memset",), {"plain": ">= 1.7"}, ""),
    C + "memset, huge pages": ("huge", ("memset",), {"plain": ">= 4", "tunable": ">= 1.3"}, ""),
    C + "a computing loop, small pages": ("small", ("compute",), {"plain": ">= 0.99"}, ""),
    C + "a computing loop, huge pages": ("huge", ("compute",), {"plain": ">= 0.99"}, ""),
    C + "a store in each page, small pages": ("small", ("page",), {"plain": ">= 0.99"}, ""),
    C + "a store in each page, huge pages": ("huge", ("page",), {"plain": ">= 0.99"}, ""),
    C + "a store in each second page, small pages":
        ("small", ("second",), {"plain": ">= 0.99"}, "<= 1.03"),
    C + "a store in each 16th page, small pages":
        ("small", ("16th",), {"plain": ">= 0.99"}, "<= 1.03"),
    C + "a store in each 128th page, small pages":
        ("small", ("128th",), {"plain": ">= 0.99"}, "<= 1.03"),
    C + "OpenMP, two threads, small pages": ("small", ("openmp",), {"plain": ">= 1.0"}, ""),
    C + "OpenMP, two threads, huge pages": ("huge", ("openmp",), {"plain": ">= 1.0"}, ""),
    "numpy.ones": ("numpy", ("numpy.ones(%d)", 1), {"plain": ">= 1.5"}, ""),
    "numpy.arange": ("numpy", ("numpy.arange(%d)", 1), {"plain": ">= 1.5"}, ""),
    "numpy.concatenate": ("numpy", ("a = numpy.ones(%d // 2); numpy.concatenate((a, a))", 1.5),
                          {"plain": ">= 1.5"}, ""),
    "numpy.fromfile, 2 GiB": ("numpy_file", (2048,), {"plain": ">= 1.5"}, ""),
    "JVM, serial, heap touched before": ("java", ("Serial", True), {"plain": ">= 1.6"}, ""),
    "JVM, serial, heap filled": ("java", ("Serial", False), {"plain": ">= 1.6"}, ""),
    "JVM, parallel, heap touched before": ("java", ("Parallel", True), {"plain": ">= 1.0"}, ""),
    "JVM, parallel, heap filled": ("java", ("Parallel", False), {"plain": ">= 1.0"}, ""),
    "PostgreSQL, first scan": ("postgresql", (), {"plain": ">= 1.2"}, ""),
    "MariaDB, first scan": ("mariadb", (), {"plain": ">= 1.2"}, ""),
    "g++": ("compiler", (), {"plain": ">= 0.99"}, "<= 1.03"),
    "sort, 2 GiB": ("sort", (2048,), {"plain": ">= 0.99"}, "<= 1.03"),
    "sqlite3": ("program", ("sqlite3", ":memory:", SQL), {"plain": ">= 0.99"}, "<= 1.03"),
    "node": ("node", (), {"plain": ">= 0.99"}, "<= 1.03"),
    "random stores": ("huge", ("random",), {"plain": ">= 0.99"}, "<= 1.03"),
    "hash table, C": ("huge", ("hash",), {"plain": ">= 0.99"}, "<= 1.03"),
    "hash table, Python": ("python_hash", (8 << 20,), {"plain": ">= 0.99"}, "<= 1.03"),
    "sparse matrix": ("huge", ("sparse",), {"plain": ">= 0.99"}, "<= 1.03"),
    "true, the start": ("start", (200,), {"plain": "<= 0.1"}, ""),
    "memset, small pages, beside two busy CPUs": ("beside", ("memset",), {"plain": ">= 0.99"}, ""),
}
NAMES = list(TABLE)


class Row:
    """What run.py asks of a row."""

    def __init__(self, name, ways, unit, fetch_mib):
        self.name, self.sides, self.unit, self.fetch_mib = name, ways, unit, fetch_mib
        _, _, self.goals, self.memory_goal = TABLE[name]

    def run(self, side):
        return self.sides[side].run()


class Makers:
    """What the rows share, in a directory of its own; each method returns the sides of a
    row, or nothing if its program is not installed."""

    def __init__(self, build, directory, mib):
        self.build, self.directory, self.mib = build, directory, mib
        self.ktask = os.path.join(build, "ktask")
        self.touch_memory = os.path.join(build, "bench", "touch-memory")
        self.library = os.path.abspath(os.path.join(build, "bench", "made-by-malloc.so"))

    def make(self, name):
        maker, arguments, _, _ = TABLE[name]
        ways = getattr(self, maker)(*arguments)
        unit = "ms" if maker == "start" else "x"
        # As much as the largest program has, and some for what else it takes.
        return Row(name, ways, unit, self.mib * 7 // 4) if ways else None

    def path(self, name, text=None):
        path = os.path.join(self.directory, name)
        if text is not None:
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        return path

    # ---- touch-memory ----

    def has_way(self, way):
        """Not without OpenMP, for that one."""
        return not subprocess.run([self.touch_memory, "1", way], check=False,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def small(self, way):
        if not self.has_way(way):
            return None
        return sides.of_small_pages(self.ktask, self.touch_memory, self.mib, way)

    def huge(self, way):
        if not self.has_way(way):
            return None
        return sides.of_huge_pages(self.ktask, self.touch_memory, self.mib, way)

    def beside(self, way):
        return {name: sides.Beside(command) for name, command in self.small(way).items()
                if name in ("plain", "ktask", "threads")}

    # ---- programs that touch in order ----

    def numpy(self, what, blocks):
        """blocks: how often MIB it needs."""
        if subprocess.run([PYTHON, "-c", "import numpy"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            return None
        words = self.mib << 17
        text = "import numpy; " + (what % words if "%d" in what else what)
        present = sides.Command([PYTHON, "-c", NUMPY_PRESENT % int(words * blocks * 1.05) + text],
                                {sides.TUNABLE: KEEP}, made=r"^([0-9.]+)$")
        return sides.of_program(self.ktask, [PYTHON, "-c", text], present, self.library)

    def numpy_file(self, mib):
        path = self.path("numbers")
        with open(path, "wb") as file:
            for _ in range(mib):
                file.write(bytes(1 << 20))
        return self.numpy(f"numpy.fromfile('{path}')", mib / self.mib)

    def java(self, collector, before):
        java = shutil.which("java")
        if not java or not shutil.which("javac"):
            return None
        subprocess.run(["javac", "-d", self.directory, self.path("Fill.java", JAVA)], check=True)
        words = [java, f"-XX:+Use{collector}GC", f"-Xms{self.mib}m", f"-Xmx{self.mib}m",
                 *(["-XX:+AlwaysPreTouch"] if before else []),
                 "-cp", self.directory, "Fill", str(self.mib // 2)]
        return sides.of_program(self.ktask, words, sides.prefaulted(self.ktask, words))

    def postgresql(self):
        return servers.postgresql(self.build, self.directory, self.mib)

    def mariadb(self):
        return servers.mariadb(self.build, self.directory, self.mib)

    # ---- programs of mixed behaviour ----

    def program(self, *words):
        return sides.of_program(self.ktask, list(words)) if shutil.which(words[0]) else None

    def compiler(self):
        return self.program("g++", "-O2", "-c", "-o", "/dev/null", self.path("program.cc", CPP))

    def sort(self, mib):
        lines = self.path("lines")
        with open(lines, "w", encoding="ascii") as file:
            word = 1
            for _ in range((mib << 20) // 40):
                word = (word * 1664525 + 1013904223) % (1 << 32)
                file.write(f"{word:010d} a line of text to be sorted\n")
        return self.program("sort", "-S", f"{2 * mib}M", "-o", "/dev/null", lines)

    def node(self):
        return self.program("node", "-e", NODE % self.mib)

    def python_hash(self, nr):
        return self.program(PYTHON, "-c", PYTHON_HASH % nr)

    # ---- the start ----

    def start(self, times):
        true = shutil.which("true")
        return {
            "plain": sides.Repeated(sides.Command([true]), times),
            "ktask": sides.Repeated(sides.Command(sides.shimmed(self.ktask, [true])), times),
        }
