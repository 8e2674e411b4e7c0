# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Memory of the tests, and what the kernel says of it."""

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def pages_at(address, length):
    """Of the pages that have these bytes, those that are present."""
    length += address % PAGE
    begin = ctypes.c_void_p(address - address % PAGE)
    vec = (ctypes.c_ubyte * (-(-length // PAGE)))()
    assert _libc.mincore(begin, ctypes.c_size_t(length), vec) == 0
    return sum(byte & 1 for byte in vec)


def pages_present(memory):
    return pages_at(address_of(memory), len(memory))


def forbid(memory, offset, length):
    address = ctypes.c_void_p(address_of(memory) + offset)
    assert _libc.mprotect(address, ctypes.c_size_t(length), 0) == 0


def locked_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmLck"))


def run_python(program, *arguments):
    """In a process of its own, which finds the modules of the tests."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-B", "-c", program, *map(str, arguments)],
        capture_output=True, text=True, timeout=300,
        env={name: value for name, value in os.environ.items()
             if name not in ("PYTHONWARNINGS", "PYTHONDEVMODE")} | {"PYTHONPATH": path},
    )


class Memory(mmap.mmap):
    """Private anonymous memory."""

    def __new__(cls, length):
        return super().__new__(
            cls, -1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        )


@pytest.fixture
def memory():
    return Memory


class Cuda:
    """A libcudart that notes what is registered; its GPU has the host's memory."""

    SOURCE = r"""
        #include <stddef.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        int answer, pieces;
        int take_answer; /* of unregistering */
        int tells; /* each call to unregister, on standard output */
        volatile int held, waits; /* unregistering waits while it is held */
        size_t bytes;
        static struct { char *start; size_t length; } known[1024];
        static unsigned long page_of(const char *at)
        {
                return (unsigned long)at / 4096;
        }
        /* Pages can be registered once. */
        int cudaHostRegister(void *start, size_t length, unsigned flags)
        {
                char *last = (char *)start + length - 1;
                if (answer || flags)
                        return answer ? answer : 1;
                for (int i = 0; i < pieces; i++)
                        if (page_of(start) <= page_of(known[i].start + known[i].length - 1) &&
                            page_of(last) >= page_of(known[i].start))
                                return 712;
                known[pieces].start = start;
                known[pieces++].length = length;
                bytes += length;
                return 0;
        }
        int cudaHostUnregister(void *start)
        {
                while (held) {
                        waits = 1;
                        usleep(1000);
                }
                if (tells)
                        dprintf(1, "unregister\n");
                if (take_answer)
                        return take_answer;
                for (int i = 0; i < pieces; i++)
                        if (known[i].start == start) {
                                known[i] = known[--pieces];
                                return 0;
                        }
                return 713;
        }
        static int piece_of(const char *at)
        {
                for (int i = 0; i < pieces; i++)
                        if (at >= known[i].start && at < known[i].start + known[i].length)
                                return i;
                return -1;
        }
        int cudaGetDeviceCount(int *nr)
        {
                *nr = 1;
                return 0;
        }
        int cudaMalloc(void **at, size_t length)
        {
                *at = malloc(length);
                return *at ? 0 : 2;
        }
        int cudaFree(void *at)
        {
                free(at);
                return 0;
        }
        int cudaMemcpyAsync(void *to, const void *from, size_t length, int way, void *stream)
        {
                const char *host = way == 1 ? from : to;
                if (piece_of(host) != piece_of(host + length - 1))
                        return 1;
                memcpy(to, from, length);
                return 0;
        }
        int cudaDeviceSynchronize(void)
        {
                return 0;
        }
        int cudaGetLastError(void)
        {
                return 0;
        }
        int cudaPointerGetAttributes(int *type, const void *at)
        {
                *type = piece_of(at) >= 0;
                return 0;
        }
    """

    def __init__(self, directory):
        compiler = shutil.which("cc")
        if not compiler:
            pytest.skip("no cc")
        self.path = directory / "libcudart.so"
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-x", "c", "-o", self.path, "-"],
            input=self.SOURCE, text=True, check=True,
        )
        self.library = ctypes.CDLL(self.path)
        self.begun = []  # of a made-up torch: that it was told to use CUDA

    def answer(self, error):
        ctypes.c_int.in_dll(self.library, "answer").value = error

    def set_held(self, held):
        ctypes.c_int.in_dll(self.library, "held").value = held

    def wait_for_a_call(self):
        end = time.monotonic() + 60
        while not ctypes.c_int.in_dll(self.library, "waits").value:
            assert time.monotonic() < end
            time.sleep(0.001)

    @property
    def pieces(self):
        return ctypes.c_int.in_dll(self.library, "pieces").value

    @property
    def bytes(self):
        return ctypes.c_size_t.in_dll(self.library, "bytes").value


@pytest.fixture
def libcudart(tmp_path):
    return Cuda(tmp_path)
