# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""With functions in Python: in order, all or nothing, and until it is taken back."""

import errno
import gc
import mmap
import os
import sys

import pytest
from conftest import PAGE, Memory, address_of, pages_present

import ktask

SIZE = 16 << 20
PIECE = 4 << 20


class Device:
    """Notes what is registered, and fails where it shall."""

    def __init__(self, fail_at=None, error=None):
        self.pieces = []
        self.fail_at = fail_at
        self.error = error

    def add(self, address, length):
        if len(self.pieces) == self.fail_at:
            raise self.error
        self.pieces.append((address, length))

    def take(self, address, length):
        assert self.pieces.pop() == (address, length)


def register(memory, device, **options):
    options = {"unit": PIECE, "max_piece": PIECE, **options}
    return ktask.register(memory, device.add, device.take, **options)


def test_until_the_end_of_the_block():
    memory, device = Memory(SIZE), Device()
    begin = address_of(memory)
    with register(memory, device) as held:
        assert held.pieces == [(at, PIECE) for at in range(0, SIZE, PIECE)]
        assert device.pieces == [(begin + at, length) for at, length in held.pieces]
        assert held.result.bytes == SIZE and held.result.chunks == 4
        assert held.longest_ns > 0
        assert pages_present(memory) == SIZE // PAGE
        with pytest.raises(BufferError):
            memory.close()
    assert device.pieces == held.pieces == []
    memory.close()


def test_until_it_is_unregistered():
    memory, device, told = bytearray(SIZE), Device(), []
    held = register(memory, device, progress=told.append)
    assert sum(told) == SIZE
    told.clear()
    assert held.unregister(progress=told.append).chunks == 4
    assert sum(told) == SIZE
    assert device.pieces == []
    assert held.unregister().bytes == 0
    memory.extend(b"more")


def test_until_nobody_has_it():
    memory, device = bytearray(SIZE), Device()
    held = register(memory, device)
    assert device.pieces
    del held
    gc.collect()
    assert device.pieces == []
    memory.extend(b"more")


@pytest.mark.parametrize("fail_at", range(4))
@pytest.mark.parametrize("error", [OSError(5, "refused"), KeyboardInterrupt(), SystemExit()])
def test_an_exception_at_any_piece_takes_all_back(fail_at, error):
    memory, device = bytearray(SIZE), Device(fail_at, error)
    with pytest.raises(type(error)) as raised:
        register(memory, device, unit=1 << 20, max_piece=1 << 20)
    assert raised.value is error
    assert device.pieces == []
    memory.extend(b"more")


def test_an_exception_that_follows_another_is_told_apart(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_type))
    first = [True, True, False]

    def add(*_):
        if not first.pop(0):
            raise ValueError("first")

    def take(*_):
        raise IndexError("second")

    with pytest.raises(ValueError, match="first"):
        ktask.register(bytearray(SIZE), add, take, unit=PIECE, max_piece=PIECE)
    assert told == [IndexError, IndexError]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_of_taking_back():
    device = Device()
    held = ktask.register(bytearray(SIZE), device.add, lambda *_: 1 / 0, max_piece=PIECE)
    with pytest.raises(ZeroDivisionError):
        held.unregister()
    # Each was given up.
    assert held.pieces == []


def test_an_exception_of_progress():
    device = Device()

    def progress(_):
        raise LookupError

    with pytest.raises(LookupError):
        register(bytearray(SIZE), device, progress=progress)
    assert device.pieces == []


def test_a_deadline():
    device = Device()
    with pytest.raises(TimeoutError):
        register(Memory(SIZE), device, deadline=1e-9)
    assert device.pieces == []


def test_memory_that_ends_early(tmp_path):
    # The file's last pages are not there: the device is the judge of them.
    path = tmp_path / "file"
    path.write_bytes(bytes(SIZE))
    device = Device(2, OSError(errno.EFAULT, "no page"))
    with open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
        file.truncate(SIZE // 2)
        with pytest.raises(OSError, match="no page"):
            register(memory, device)
    assert device.pieces == []


def test_bad_arguments():
    memory = bytearray(10)
    for options in ({"stall": 0}, {"unit": -1}, {"max_piece": -1}, {"threads": -1}):
        with pytest.raises(ValueError):
            register(memory, Device(), **options)
    with pytest.raises(TypeError):
        ktask.register(memory, None, None)
    with pytest.raises(TypeError):
        register(None, Device())
    memory.extend(b"more")


def test_a_call_on_what_another_call_works_on():
    device, seen = Device(), []

    def take(address, length):
        with pytest.raises(RuntimeError, match="another call"):
            held.unregister()
        seen.append(length)

    held = ktask.register(bytearray(SIZE), device.add, take, unit=PIECE, max_piece=PIECE)
    held.unregister()
    assert seen == [PIECE] * 4


def test_it_is_taken_back_by_a_function_too():
    device, told = Device(), []
    held = register(bytearray(SIZE), device)
    assert ktask.unregister(held, progress=told.append).bytes == SIZE
    assert sum(told) == SIZE
    assert device.pieces == held.pieces == []


def test_a_refused_allocation_leaves_nothing_registered():
    refuse = pytest.importorskip("_testcapi", reason="no _testcapi")
    memory, registered = Memory(PAGE), bytearray(1)

    def add(address, length):
        registered[0] = 1

    def take(address, length):
        registered[0] = 0

    for nr in range(1000):
        refuse.set_nomemory(nr, nr + 1)
        try:
            held = ktask.register(memory, add, take)
        except MemoryError:
            held = None
        finally:
            refuse.remove_mem_hooks()
        assert held or not registered[0], f"allocation {nr}"
        if held:
            held.unregister()
            if nr > 100:
                break


def test_nothing_is_registered_of_nothing():
    device = Device()
    with register(b"", device) as held:
        assert held.pieces == [] and held.result.bytes == 0


def test_a_child_of_a_fork_takes_nothing_back():
    device = Device()
    held = register(bytearray(SIZE), device)
    child = os.fork()
    if not child:
        status = 99
        try:
            held.unregister()
            status = len(device.pieces)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    held.unregister()
    assert device.pieces == []
