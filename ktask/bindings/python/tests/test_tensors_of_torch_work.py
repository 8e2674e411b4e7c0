# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Tensors by what they say of themselves, and pinned ones.

torch is large: with it these run against the real one, else against one that answers as
torch does.
"""

import errno
import functools
import gc
import os
import sys
import threading
import weakref

import pytest
from conftest import Memory
from made_up_torch import Tensor, make_torch

import ktask


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
    torch = pytest.importorskip("torch", reason="no torch: make check-torch")
    tensor = torch.ones(1 << 20, requires_grad=True)
    assert ktask.populate(tensor).bytes == 4 << 20
    assert ktask.populate(torch.empty(0)).bytes == 0
    with pytest.raises(BufferError):
        ktask.populate(torch.ones(4, 4)[:, 1])


def test_pinned_tensors_of_the_real_torch(libcudart, monkeypatch):
    torch = pytest.importorskip("torch", reason="no torch: make check-torch")
    register = functools.partial(ktask.register_cuda, library=libcudart.path)
    monkeypatch.setattr(ktask, "register_cuda", register)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    tensor = ktask.pinned_empty(3, 1000, dtype=torch.float16)
    assert (tensor.shape, tensor.dtype) == ((3, 1000), torch.float16)
    assert (libcudart.pieces, libcudart.bytes) == (1, 2 << 20)
    tensor[2, 999] = 7
    row = tensor[2]
    del tensor
    assert row[999] == 7 and libcudart.pieces == 1
    del row
    assert libcudart.pieces == 0


def test_registering_with_cuda(libcudart):
    memory = Memory(16 << 20)
    with ktask.register_cuda(memory, library=libcudart.path, max_piece=4 << 20) as held:
        assert libcudart.pieces == held.result.chunks == len(held.pieces) >= 4
        assert libcudart.bytes == held.result.bytes == 16 << 20
    assert libcudart.pieces == 0


def test_what_another_thread_takes_back_is_not_listed(libcudart):
    held = ktask.register_cuda(
        Memory(4 << 20), library=libcudart.path, max_piece=1 << 20
    )
    libcudart.set_held(1)
    thread = threading.Thread(target=held.unregister)
    thread.start()
    try:
        libcudart.wait_for_a_call()
        for name in ("pieces", "longest_ns"):
            with pytest.raises(RuntimeError, match="another call"):
                getattr(held, name)
    finally:
        libcudart.set_held(0)
        thread.join()
    assert held.pieces == []


def test_an_error_of_cuda(libcudart):
    libcudart.answer(2)
    with pytest.raises(ktask.Error, match="cudaError 2") as raised:
        ktask.register_cuda(bytearray(1 << 20), library=libcudart.path)
    assert raised.value.errno == errno.ENOMEM
    assert raised.value.offset == 0
    assert libcudart.pieces == 0


def test_a_tensor_lives_until_it_is_unregistered(libcudart):
    tensor = Tensor(Memory(1 << 20))
    alive = weakref.ref(tensor)
    held = ktask.register_cuda(tensor, library=libcudart.path)
    del tensor
    gc.collect()
    assert alive() and libcudart.pieces
    held.unregister()
    gc.collect()
    assert not alive() and not libcudart.pieces


def test_a_tensor_lives_as_long_as_its_registration():
    tensor, taken = Tensor(Memory(1 << 20)), []
    alive = weakref.ref(tensor)
    held = ktask.register(
        tensor, lambda *_: None, lambda *_: taken.append(alive() is not None)
    )
    del tensor
    gc.collect()
    assert alive()
    del held
    gc.collect()
    assert taken and all(taken)
    assert not alive()


def test_a_tensor_that_is_refused_is_let_go(libcudart):
    libcudart.answer(2)
    tensor = Tensor(Memory(1 << 20))
    alive = weakref.ref(tensor)
    with pytest.raises(ktask.Error):
        ktask.register_cuda(tensor, library=libcudart.path)
    del tensor
    gc.collect()
    assert not alive()


def test_without_a_libcudart(tmp_path):
    with pytest.raises(ktask.Error) as raised:
        ktask.register_cuda(bytearray(10), library=tmp_path / "missing.so")
    assert raised.value.errno == errno.ELIBACC


@pytest.fixture
def cuda(monkeypatch, libcudart):
    torch = make_torch(lambda: libcudart.begun.append(True))
    monkeypatch.setitem(sys.modules, "torch", torch)
    register = functools.partial(ktask.register_cuda, library=libcudart.path)
    monkeypatch.setattr(ktask, "register_cuda", register)
    return libcudart


def test_a_pinned_tensor_is_registered_as_long_as_it_lives(cuda):
    tensor = ktask.pinned_empty(1024, 1000)
    assert tensor.shape == (1024, 1000)
    assert (cuda.pieces, cuda.bytes) == (1, 4 << 20)
    view = tensor.view((1000, 1024))
    del tensor
    assert cuda.pieces
    del view
    assert not cuda.pieces


def test_torch_has_begun_to_use_cuda(cuda):
    # Before that its is_pinned() says no.
    ktask.pinned_empty(1000)
    assert cuda.begun


def test_sizes_as_torch_takes_them(cuda):
    assert ktask.pinned_empty((2, 3)).shape == (2, 3)
    assert ktask.pinned_empty([2, 3]).shape == (2, 3)
    assert ktask.pinned_empty(7).shape == (7,)
    assert ktask.pinned_empty(0, 5) == ("torch's own", (0, 5), True)


def test_what_cuda_refuses_is_given_back(cuda):
    cuda.answer(2)
    with pytest.raises(ktask.Error, match="cudaError 2"):
        ktask.pinned_empty(100)
    assert not cuda.pieces


def test_a_pinned_tensor_of_pieces(cuda):
    tensor = ktask.pinned_empty(4 << 20, unit=2 << 20)
    assert 1 <= cuda.pieces <= 8
    assert cuda.bytes == 16 << 20
    del tensor
    assert not cuda.pieces


def test_a_child_of_a_fork_unregisters_nothing(cuda):
    tensor = ktask.pinned_empty(1000)
    child = os.fork()
    if not child:
        del tensor
        os._exit(cuda.pieces)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    del tensor
    assert not cuda.pieces


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
