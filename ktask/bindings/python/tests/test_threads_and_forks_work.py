# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Other threads run meanwhile; a child of a fork can call, and need not return."""

import errno
import os
import subprocess
import sys
import threading

import pytest
from conftest import Memory

import ktask

SIZE = 64 << 20


def test_other_threads_run_meanwhile():
    # The main thread gives the GIL away only where it is released: nobody else ends
    # the loop.
    ran = []
    go = threading.Lock()
    go.acquire()

    def run():
        with go:
            ran.append(1)

    before = sys.getswitchinterval()
    thread = threading.Thread(target=run)
    thread.start()
    sys.setswitchinterval(1000)
    try:
        go.release()
        memory = Memory(SIZE)
        for _ in range(1000):
            if ran:
                break
            ktask.populate(memory)
    finally:
        sys.setswitchinterval(before)
    assert ran
    thread.join()


def test_many_threads_at_once():
    failed = []

    def run():
        try:
            for _ in range(5):
                told = []
                memory = bytearray(20 << 20)
                ktask.populate(memory, progress=told.append)
                assert sum(told) == 20 << 20
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def in_child(run):
    """What a child of a fork says: the status that run() returns."""
    child = os.fork()
    if not child:
        status = 99
        try:
            status = run()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_can_call():
    ktask.populate(Memory(SIZE))
    assert in_child(lambda: ktask.populate(Memory(SIZE)).bytes == SIZE) == 1


def test_a_fork_in_a_progress_function():
    # In the child the call ends; the parent's goes on.
    parent = os.getpid()
    status = []

    def progress(_):
        if status:
            return
        child = os.fork()
        if child:
            status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    memory = Memory(4 * SIZE)
    try:
        result = ktask.populate(memory, progress=progress)
    except ktask.Error as error:
        if os.getpid() != parent:
            os._exit(40 + (error.errno == errno.ECANCELED))
        raise
    finally:
        if os.getpid() != parent:
            os._exit(30)
    assert result.bytes == 4 * SIZE
    # 30: all had been done when the child began.
    assert status[0] in (41, 30)


def test_a_daemon_thread_does_not_hold_up_the_end():
    program = (
        "import ktask, threading, mmap\n"
        "def run():\n"
        "    while True: ktask.populate(mmap.mmap(-1, 64 << 20), progress=print)\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "import time; time.sleep(0.05)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], timeout=120, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )
    assert said.returncode == 0, said.stderr


def test_idle_helpers_can_be_ended():
    ktask.populate(Memory(SIZE), threads=2)
    assert ktask.trim() >= 0
    assert ktask.trim() == 0
    assert ktask.populate(Memory(SIZE)).bytes == SIZE


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity")
def test_limits_follow_the_machine():
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        limits = {limit.name: limit.threads for limit in ktask.limits()}
    finally:
        os.sched_setaffinity(0, cpus)
    assert limits["affinity"] == 1
    helpers = ktask.helpers()
    assert 0 <= helpers.used <= helpers.limit
    assert isinstance(ktask.jobs(), list)
