# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Tensors by what they say of themselves, and pinned ones.

torch is large: with it these run against the real one, else against one that answers as
torch does.
"""

import mmap
import os
import sys
import types

import pytest
from conftest import Memory, address_of

import ktask


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


def test_a_tensor_of_the_cpu():
    tensor = Tensor(Memory(1 << 20))
    assert ktask.populate(tensor).bytes == 1 << 20
    try:
        with ktask.locked(tensor) as result:
            assert result.bytes == 1 << 20
    except ktask.Error as error:
        pytest.skip(f"mlock is refused: {error}")


def test_tensors_that_are_refused():
    with pytest.raises(BufferError, match="not in memory"):
        ktask.populate(Tensor(bytearray(8), device="cuda"))
    with pytest.raises(BufferError, match="not contiguous"):
        ktask.populate(Tensor(bytearray(8), contiguous=False))


def test_the_real_torch():
    torch = pytest.importorskip("torch", reason="no torch")
    tensor = torch.ones(1 << 20, requires_grad=True)
    assert ktask.populate(tensor).bytes == 4 << 20
    assert ktask.populate(torch.empty(0)).bytes == 0
    with pytest.raises(BufferError):
        ktask.populate(torch.ones(4, 4)[:, 1])


class Cuda:
    """A torch whose CUDA notes what is registered."""

    class cudaError:
        success = 0

    def __init__(self, answer=0):
        self.answer = answer
        self.registered = {}

    def cudaHostRegister(self, address, length, flags):
        assert address % mmap.PAGESIZE == 0 and flags == 0
        if not self.answer:
            self.registered[address] = length
        return self.answer

    def cudaHostUnregister(self, address):
        del self.registered[address]
        return 0


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


@pytest.fixture
def cuda(monkeypatch):
    cuda = Cuda()
    float32 = types.SimpleNamespace(itemsize=4)
    torch = types.SimpleNamespace(
        cuda=types.SimpleNamespace(is_available=lambda: True, cudart=lambda: cuda),
        Size=lambda sizes: Size(sizes),
        get_default_dtype=lambda: float32,
        frombuffer=lambda memory, dtype, count: Flat(memory, count),
        empty=lambda shape, dtype, pin_memory: ("torch's own", shape, pin_memory),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    return cuda


def test_a_pinned_tensor_is_registered_as_long_as_it_lives(cuda):
    tensor = ktask.pinned_empty(1024, 1000)
    assert tensor.shape == (1024, 1000)
    assert list(cuda.registered.values()) == [4 << 20]
    view = tensor.view((1000, 1024))
    del tensor
    assert cuda.registered
    del view
    assert not cuda.registered


def test_sizes_as_torch_takes_them(cuda):
    assert ktask.pinned_empty((2, 3)).shape == (2, 3)
    assert ktask.pinned_empty([2, 3]).shape == (2, 3)
    assert ktask.pinned_empty(7).shape == (7,)
    assert ktask.pinned_empty(0, 5) == ("torch's own", (0, 5), True)


def test_what_cuda_refuses_is_given_back(cuda):
    cuda.answer = 2
    with pytest.raises(RuntimeError, match="cudaHostRegister: 2"):
        ktask.pinned_empty(100)
    assert not cuda.registered


def test_a_child_of_a_fork_unregisters_nothing(cuda):
    tensor = ktask.pinned_empty(1000)
    child = os.fork()
    if not child:
        del tensor
        os._exit(len(cuda.registered))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    del tensor
    assert not cuda.registered


def test_progress_of_pinning(cuda):
    told = []
    ktask.pinned_empty(16 << 20, progress=told.append)
    assert sum(told) == 64 << 20


def test_without_cuda(cuda):
    sys.modules["torch"].cuda.is_available = lambda: False
    with pytest.raises(RuntimeError, match="no CUDA device"):
        ktask.pinned_empty(1)


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RuntimeError, match="torch is not installed"):
        ktask.pinned_empty(1)
