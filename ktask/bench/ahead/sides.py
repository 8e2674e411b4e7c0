# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The ways of running a program, and what one run took."""
import os
import re
import subprocess
import sys
import tempfile
import time

TUNABLE = "GLIBC_TUNABLES"
HUGE = {TUNABLE: "glibc.malloc.hugetlb=1"}

# In the order of the table; "plain" is what all are compared with.
TITLES = {
    "plain": "plain",
    "ktask": "ktask run",
    "tunable": "hugetlb=1 of glibc",
    "populate": "MAP_POPULATE",
    "threads": "threads that touch before",
    "beside": "a thread that knows",
    "present": "all present",
}


class Command:
    """A program: its words, what its environment has besides, and where its time stands.

    says_time: it prints the seconds itself, and the MiB.  made: finds in what it says how
    long its memory took that is to be present, which is not counted.
    """

    def __init__(self, words, environment=None, says_time=False, made=None):
        self.words = words
        self.environment = environment or {}
        self.says_time = says_time
        self.made = made

    def run(self):
        environment = {**os.environ, **self.environment}
        with tempfile.TemporaryFile("w+") as said, open(os.devnull, "r+b") as null:
            begin = time.monotonic()
            child = subprocess.Popen(
                self.words, env=environment, stdin=null, stdout=said if self.says_time else null,
                stderr=said if self.made else None)
            _, status, usage = os.wait4(child.pid, 0)
            seconds = time.monotonic() - begin
            said.seek(0)
            text = said.read()
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"ktask: bench: {' '.join(self.words)[:200]} ended with {child.returncode}")
        if self.says_time:
            seconds, mib = map(float, text.split()[:2])
            return seconds, mib
        return seconds - self.seconds_made(text), usage.ru_maxrss / 1024

    def seconds_made(self, text):
        if not self.made:
            return 0
        found = re.search(self.made, text, re.MULTILINE)
        if not found:
            sys.exit(f"ktask: bench: {self.words[0]} said nothing of its memory: {text}")
        return float(found.group(1))


def shimmed(ktask, words, *options):
    return [ktask, "run", *options, "--"] + words


def of_program(ktask, words, present=None, library=None):
    """A program as a user starts it.  Its source is not ours, so where its memory comes from
    malloc() a library makes that, in the ways of touch-memory."""
    found = {
        "plain": Command(words),
        "ktask": Command(shimmed(ktask, words)),
        "tunable": Command(words, HUGE),
    }
    for way in ("populate", "threads", "beside") if library else ():
        found[way] = Command(words, {"LD_PRELOAD": library, "MADE_BY_MALLOC": way})
    if present:
        found["present"] = present
    return found


def prefaulted(ktask, words):
    """The whole heap of a JVM is made before it begins."""
    return Command(shimmed(ktask, words, "--prefault=wait", "--report"),
                   made=r"^ktask: prefault: .* bytes, ([0-9.]+) s,")


def of_small_pages(ktask, program, mib, way):
    """touch-memory, all of whose pages are of 4 KiB."""
    words = [program, str(mib), way]
    return {
        "plain": Command(words, says_time=True),
        "ktask": Command(shimmed(ktask, words, "--ahead=small"), says_time=True),
        "populate": Command(words + ["populate"], says_time=True),
        "threads": Command(words + ["threads"], says_time=True),
        "present": Command(words + ["present"], says_time=True),
    }


def of_huge_pages(ktask, program, mib, way):
    """touch-memory, whose pages are huge on somebody's advice: but for plain."""
    words = [program, str(mib), way]
    return {
        "plain": Command(words, says_time=True),
        "ktask": Command(shimmed(ktask, words), says_time=True),
        "tunable": Command(words, HUGE, says_time=True),
        "populate": Command(words + ["populate", "huge"], says_time=True),
        "threads": Command(words + ["threads", "huge"], says_time=True),
        "beside": Command(words + ["beside", "huge"], says_time=True),
        "present": Command(words + ["present", "huge"], says_time=True),
    }


class Repeated:
    """So many starts of a small program, of which one is the value: milliseconds."""

    def __init__(self, command, times):
        self.command, self.times = command, times

    def run(self):
        begin = time.monotonic()
        for _ in range(self.times):
            subprocess.run(self.command.words, check=True, stdout=subprocess.DEVNULL)
        return (time.monotonic() - begin) * 1000 / self.times, 0


class Beside:
    """A command beside as many busy programs as there are CPUs."""

    def __init__(self, command):
        self.command = command

    def run(self):
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
                for _ in range(os.cpu_count())]
        try:
            return self.command.run()
        finally:
            for child in busy:
                child.kill()
                child.wait()
