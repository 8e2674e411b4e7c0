# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""By a deadline, Ctrl-C or an exception of the progress function; and progress adds up."""

import ctypes
import errno
import functools
import mmap
import os
import signal
import threading

import pytest
from conftest import Memory, locked_kib, pages_present

import ktask

SIZE = 256 << 20


@pytest.mark.parametrize("length", [0, 1, 5000, 1 << 20, SIZE])
def test_progress_adds_up(length):
    told = []
    ktask.populate(bytearray(length), progress=told.append)
    assert sum(told) == length
    assert all(more > 0 for more in told)


def test_progress_as_tqdm_takes_it():
    class Bar:
        """Like tqdm's: update() tells whether it has drawn."""

        n = 0

        def update(self, more=1):
            self.n += more
            return True

    bar = Bar()
    ktask.populate(Memory(SIZE), progress=bar.update)
    assert bar.n == SIZE


class Unwelcome(Exception):
    pass


def test_an_exception_of_progress_ends_the_call():
    calls = []

    def progress(more):
        calls.append(more)
        raise Unwelcome

    memory = Memory(SIZE)
    with pytest.raises(Unwelcome):
        ktask.populate(memory, progress=progress)
    assert len(calls) == 1
    memory.close()


def test_progress_with_wrong_arguments():
    with pytest.raises(TypeError, match="argument"):
        ktask.populate(Memory(SIZE), progress=lambda: None)


def test_a_lock_that_progress_ends_is_undone():
    memory = Memory(SIZE)
    before = locked_kib()

    def progress(_):
        raise Unwelcome

    try:
        with pytest.raises(Unwelcome):
            ktask.lock(memory, progress=progress)
    except ktask.Error as error:
        pytest.skip(f"mlock is refused: {error}")
    # At the very end all is locked: then the exception comes too late.
    assert locked_kib() in (before, before + SIZE // 1024)
    ktask.unlock(memory)


def test_a_deadline_that_has_passed():
    memory = Memory(SIZE)
    with pytest.raises(TimeoutError) as raised:
        ktask.populate(memory, deadline=1e-9)
    assert isinstance(raised.value, ktask.DeadlineError)
    assert raised.value.errno == errno.ETIMEDOUT
    assert raised.value.offset is None
    assert pages_present(memory) < SIZE // 4096


def test_ctrl_c_ends_a_call():
    # A function in C, in which Python does not look for signals.  One thread: nobody
    # makes the rest while the caller has no CPU.
    interrupt = functools.partial(ctypes.CDLL(None).kill, os.getpid(), signal.SIGINT)
    memory = Memory(SIZE)
    with pytest.raises(KeyboardInterrupt):
        ktask.populate(memory, progress=interrupt, threads=1)
    assert pages_present(memory) < SIZE // 4096
    # Nothing is left of it.
    assert ktask.populate(memory).bytes == SIZE
    memory.close()


def test_ctrl_c_ends_a_call_without_progress():
    memory = Memory(SIZE)
    with pytest.raises(KeyboardInterrupt):
        ending = threading.Thread(target=signal.pthread_kill, args=(
            threading.main_thread().ident, signal.SIGINT))
        ending.start()
        for _ in range(1000):
            ktask.populate(memory)
            memory.madvise(mmap.MADV_DONTNEED)
    ending.join()
    assert ktask.populate(memory).bytes == SIZE


def test_a_signal_that_raises_nothing_does_not():
    count = []
    before = signal.signal(signal.SIGALRM, lambda *_: count.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        assert ktask.populate(Memory(SIZE)).bytes == SIZE
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_progress_runs_in_the_thread_that_called():
    threads = set()
    ktask.populate(Memory(SIZE), progress=lambda _: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}
