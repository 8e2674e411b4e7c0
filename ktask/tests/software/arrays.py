# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Allocates, fills, computes with and frees large arrays, several times over,
# in the ways that NumPy programs have for that, and prints checksums.
import hashlib
import mmap
import sys
import tempfile

import numpy

MIB = 1 << 20
random = numpy.random.default_rng(1)


def tell(what, array):
    print(what, hashlib.sha256(array.tobytes()).hexdigest())


def heap(mib):
    """From the allocator, freed at once and all together."""
    kept = []
    for i in range(6):
        array = random.integers(0, 1 << 40, size=mib * MIB // 8)
        array.sort()
        tell("sorted %d" % i, array)
        kept.append(array[::-1].copy())
    tell("sum", sum(kept))
    print("zeros", int(numpy.zeros(mib * MIB // 8, dtype=numpy.int64).any()))


def mapped(mib):
    """In a mapping made for it, populated; discarded, reused, unmapped."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    for i in range(4):
        memory = mmap.mmap(-1, mib * MIB, flags=flags)
        array = numpy.frombuffer(memory, dtype=numpy.int64)
        print("mapped zeros", int(array.any()))
        array[:] = random.integers(0, 1 << 40, size=len(array))
        tell("mapped %d" % i, array.cumsum())
        memory.madvise(mmap.MADV_DONTNEED)
        print("discarded", int(array.any()))
        array[::512] = i
        tell("reused %d" % i, array)
        del array
        memory.close()


def in_file(mib):
    """A file as an array, written back and read by way of another mapping."""
    with tempfile.NamedTemporaryFile() as file:
        array = numpy.memmap(file.name, dtype=numpy.int32, mode="w+",
                             shape=mib * MIB // 4)
        array[:] = numpy.arange(len(array), dtype=numpy.int32)[::-1]
        array.flush()
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ,
                       flags=mmap.MAP_SHARED | mmap.MAP_POPULATE) as memory:
            print("file", hashlib.sha256(memory).hexdigest())


size_mib = int(sys.argv[1])
heap(size_mib)
mapped(size_mib)
in_file(size_mib)
