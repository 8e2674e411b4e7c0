# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Memory of the tests, and what the kernel says of it."""

import ctypes
import mmap

import pytest

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def pages_present(memory):
    vec = (ctypes.c_ubyte * (-(-len(memory) // PAGE)))()
    address = ctypes.c_void_p(address_of(memory))
    assert _libc.mincore(address, ctypes.c_size_t(len(memory)), vec) == 0
    return sum(byte & 1 for byte in vec)


def forbid(memory, offset, length):
    address = ctypes.c_void_p(address_of(memory) + offset)
    assert _libc.mprotect(address, ctypes.c_size_t(length), 0) == 0


def locked_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmLck"))


class Memory(mmap.mmap):
    """Private anonymous memory."""

    def __new__(cls, length):
        return super().__new__(
            cls, -1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        )


@pytest.fixture
def memory():
    return Memory
