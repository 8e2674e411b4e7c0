# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A torch that answers as the real one does what ktask asks it."""

import types

from conftest import address_of

FLOAT32 = types.SimpleNamespace(itemsize=4)


class Size(tuple):
    def numel(self):
        count = 1
        for length in self:
            count *= length
        return count


class Flat:
    def __init__(self, memory, count, shape=None):
        self.memory = memoryview(memory)
        self.count = count
        self.shape = shape

    def data_ptr(self):
        return address_of(self.memory)

    def view(self, shape):
        return Flat(self.memory, self.count, tuple(shape))


def make_torch(begin):
    """``begin`` is called when it is told to use CUDA."""
    return types.SimpleNamespace(
        cuda=types.SimpleNamespace(is_available=lambda: True, init=begin),
        Size=lambda sizes: Size(sizes),
        get_default_dtype=lambda: FLOAT32,
        frombuffer=lambda memory, dtype, count: Flat(memory, count),
        empty=lambda shape, dtype, pin_memory=False: (
            types.SimpleNamespace(element_size=lambda: dtype.itemsize)
            if shape == () else ("torch's own", shape, pin_memory)
        ),
    )


class Tensor:
    """What ktask asks of a tensor."""

    def __init__(self, memory, device="cpu", contiguous=True):
        self._memory = memory
        self.device = types.SimpleNamespace(type=device)
        self._contiguous = contiguous

    def data_ptr(self):
        return address_of(self._memory)

    def is_contiguous(self):
        return self._contiguous

    def numel(self):
        return len(self._memory) // 2

    def element_size(self):
        return 2
