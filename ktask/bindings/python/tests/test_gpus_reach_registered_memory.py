# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What a GPU copies out of registered memory and back, piece by piece.

Where there is a GPU these run with it, and besides with a libcudart that is made up:
the calls are the same.
"""

import ctypes
import os
import re

import pytest
from conftest import PAGE, Memory, address_of, pages_at, pages_present, run_python
from made_up_torch import Tensor

import ktask

SIZE = 64 << 20
UNIT = 8 << 20
TO_DEVICE, TO_HOST = 1, 2
UNREGISTERED, HOST = 0, 1


def load_runtime():
    """The libcudart of torch, or of the system."""
    try:
        import torch  # noqa: F401
    except ImportError:
        pass
    for version in (".13", ".12", ".11.0", ""):
        try:
            return ctypes.CDLL(f"libcudart.so{version}")
        except OSError:
            continue
    pytest.skip("no libcudart")


class Gpu:
    """Calls of a libcudart; each must succeed."""

    def __init__(self, library, path):
        self.library = library
        self.path = path  # None: ktask finds it

    def call(self, name, *arguments):
        answer = self.library[name](*arguments)
        assert answer == 0, f"{name}: cudaError {answer}"

    def allocate(self, length):
        at = ctypes.c_void_p()
        self.call("cudaMalloc", ctypes.byref(at), ctypes.c_size_t(length))
        return at.value

    def free(self, at):
        self.call("cudaFree", ctypes.c_void_p(at))

    def try_copy(self, to, source, length, way):
        return self.library.cudaMemcpyAsync(
            ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(length), way,
            None,
        ) or self.library.cudaDeviceSynchronize()

    def copy(self, to, source, length, way):
        answer = self.try_copy(to, source, length, way)
        assert answer == 0, f"copy: cudaError {answer}"

    def type_of(self, address):
        attributes = (ctypes.c_int * 64)()
        answer = self.library.cudaPointerGetAttributes(
            attributes, ctypes.c_void_p(address)
        )
        self.library.cudaGetLastError()
        # Before CUDA 11 what is not registered was an error.
        return attributes[0] if answer == 0 else UNREGISTERED


@pytest.fixture(params=["a GPU", "a made-up libcudart"])
def gpu(request):
    if request.param != "a GPU":
        made_up = request.getfixturevalue("libcudart")
        return Gpu(made_up.library, made_up.path)
    library = load_runtime()
    nr = ctypes.c_int(0)
    if library.cudaGetDeviceCount(ctypes.byref(nr)) or not nr.value:
        pytest.skip("no GPU")
    return Gpu(library, None)


def register(gpu, memory):
    return ktask.register_cuda(memory, library=gpu.path, unit=UNIT, max_piece=UNIT)


def test_every_piece_is_copied_there_and_back(gpu):
    memory, back = Memory(SIZE), bytearray(UNIT)
    begin = address_of(memory)
    ktask.populate(memory)
    assert pages_present(memory) * PAGE == SIZE
    device = gpu.allocate(UNIT)
    with register(gpu, memory) as held:
        assert [length for _, length in held.pieces] == [UNIT] * (SIZE // UNIT)
        for offset, length in held.pieces:
            memory[offset : offset + length] = os.urandom(PAGE) * (length // PAGE)
            gpu.copy(device, begin + offset, length, TO_DEVICE)
            gpu.copy(address_of(back), device, length, TO_HOST)
            assert back == memory[offset : offset + length]
            # And what the GPU writes is in the memory.
            memory[offset : offset + length] = bytes(length)
            gpu.copy(begin + offset, device, length, TO_HOST)
            assert back == memory[offset : offset + length]
    gpu.free(device)


def test_it_is_host_memory_while_it_is_registered(gpu):
    memory = Memory(SIZE)
    begin = address_of(memory)
    ends = [at for piece in range(0, SIZE, UNIT) for at in (piece, piece + UNIT - 1)]
    with register(gpu, memory):
        assert {gpu.type_of(begin + at) for at in ends} == {HOST}
    assert {gpu.type_of(begin + at) for at in ends} == {UNREGISTERED}


def test_memory_that_is_absent_is_registered_with_its_contents(gpu):
    memory, back = Memory(SIZE), bytearray(b"x" * UNIT)
    memory[SIZE - 1] = 7
    device = gpu.allocate(UNIT)
    with register(gpu, memory):
        gpu.copy(device, address_of(memory) + SIZE - UNIT, UNIT, TO_DEVICE)
        gpu.copy(address_of(back), device, UNIT, TO_HOST)
    assert back == bytes(UNIT - 1) + b"\7"
    gpu.free(device)


def copy_across_an_edge(path, way):
    """Say what that does.  It may leave CUDA unusable: in a process of its own."""
    gpu = Gpu(ctypes.CDLL(path), path) if path else Gpu(load_runtime(), None)
    memory, data = Memory(2 * UNIT), os.urandom(UNIT)
    source, back = bytearray(data), bytearray(UNIT)
    middle = address_of(memory) + UNIT // 2
    device = gpu.allocate(UNIT)
    held = register(gpu, memory)
    assert [length for _, length in held.pieces] == [UNIT, UNIT]
    if way == TO_DEVICE:
        ctypes.memmove(middle, data, UNIT)
        error = gpu.try_copy(device, middle, UNIT, TO_DEVICE)
        if not error:
            gpu.copy(address_of(back), device, UNIT, TO_HOST)
    else:
        gpu.copy(device, address_of(source), UNIT, TO_DEVICE)
        error = gpu.try_copy(middle, device, UNIT, TO_HOST)
        back = ctypes.string_at(middle, UNIT)
    right = "copied" if back == data else "copied what is wrong"
    print(f"error {error}" if error else right, flush=True)
    os._exit(0)


@pytest.mark.parametrize("way", [TO_DEVICE, TO_HOST])
def test_a_copy_across_an_edge_fails_or_is_right(gpu, way):
    said = run_python(
        "import sys, test_gpus_reach_registered_memory as here\n"
        "here.copy_across_an_edge(sys.argv[1], int(sys.argv[2]))",
        gpu.path or "", way,
    )
    assert said.returncode == 0, said.stderr
    outcome = said.stdout.strip()
    print(f"a copy across an edge, way {way}: {outcome}")
    assert outcome == "copied" or re.fullmatch(r"error [1-9][0-9]*", outcome)


def make_tensor(memory=None):
    """Of torch where there is one; without memory, where malloc leaves it."""
    try:
        import torch
    except ImportError:
        return Tensor(memory or memoryview(Memory(SIZE + PAGE))[64 : SIZE + 64])
    if memory is not None:
        return torch.frombuffer(memory, dtype=torch.uint8)
    return torch.empty(SIZE, dtype=torch.uint8)


def check_pinned(gpu, tensor):
    ends = (tensor.data_ptr(), tensor.data_ptr() + SIZE - 1)
    assert {gpu.type_of(end) for end in ends} == {HOST}
    # A made-up libcudart is not that of torch.
    if gpu.path is None and not isinstance(tensor, Tensor):
        import torch

        torch.cuda.init()
        assert tensor.is_pinned() and tensor[-1:].is_pinned()


def check_unpinned(gpu, tensor):
    ends = (tensor.data_ptr(), tensor.data_ptr() + SIZE - 1)
    assert {gpu.type_of(end) for end in ends} == {UNREGISTERED}


def check_copies(gpu, tensor):
    device = gpu.allocate(UNIT)
    for offset in range(0, SIZE, UNIT):
        data, at = os.urandom(UNIT), tensor.data_ptr() + offset
        ctypes.memmove(at, data, UNIT)
        gpu.copy(device, at, UNIT, TO_DEVICE)
        ctypes.memset(at, 0, UNIT)
        gpu.copy(at, device, UNIT, TO_HOST)
        assert ctypes.string_at(at, UNIT) == data
    gpu.free(device)


def test_a_tensor_is_registered_in_one_piece(gpu):
    tensor = make_tensor()
    with ktask.register_cuda(tensor, library=gpu.path, unit=SIZE) as held:
        assert held.pieces == [(0, SIZE)]
        check_pinned(gpu, tensor)
        check_copies(gpu, tensor)
    check_unpinned(gpu, tensor)


def test_a_tensor_that_begins_at_a_page_is_registered_by_units(gpu):
    tensor = make_tensor(Memory(SIZE))
    with register(gpu, tensor) as held:
        assert [length for _, length in held.pieces] == [UNIT] * (SIZE // UNIT)
        check_pinned(gpu, tensor)
        check_copies(gpu, tensor)
    check_unpinned(gpu, tensor)


def test_a_tensor_whose_units_share_pages_is_refused_or_copied(gpu):
    tensor = make_tensor()
    try:
        held = register(gpu, tensor)
    except ktask.Error as error:
        print(f"units that share pages: {error}")
        assert error.offset % UNIT == 0
    else:
        print("units that share pages are registered")
        with held:
            check_copies(gpu, tensor)
    check_unpinned(gpu, tensor)
    # Nothing is left of it.
    with ktask.register_cuda(tensor, library=gpu.path, unit=SIZE):
        check_copies(gpu, tensor)


def test_a_tensor_that_was_populated_is_pinned_by_others(gpu):
    tensor = make_tensor()
    begin = tensor.data_ptr()
    assert ktask.populate(tensor).bytes == SIZE
    assert pages_at(begin, SIZE) == -(-(begin % PAGE + SIZE) // PAGE)
    # As torch.cuda.cudart().cudaHostRegister() does.
    gpu.call("cudaHostRegister", ctypes.c_void_p(begin), ctypes.c_size_t(SIZE), 0)
    check_pinned(gpu, tensor)
    check_copies(gpu, tensor)
    gpu.call("cudaHostUnregister", ctypes.c_void_p(begin))
    check_unpinned(gpu, tensor)


def test_a_tensor_that_was_populated_is_pinned_by_torch():
    torch = pytest.importorskip("torch", reason="no torch: make check-torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU here")
    tensor = torch.empty(SIZE // 4, dtype=torch.float32)
    ktask.populate(tensor)
    tensor.copy_(torch.arange(SIZE // 4, dtype=torch.float32))
    pinned = tensor.pin_memory()
    assert pinned.is_pinned() and torch.equal(pinned, tensor)
    there = pinned.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    assert torch.equal(there.cpu(), tensor)


def test_pinned_tensors_are_pinned_for_torch():
    torch = pytest.importorskip("torch", reason="no torch: make check-torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU here")
    for unit in (0, UNIT):
        tensor = ktask.pinned_empty(SIZE // 4, dtype=torch.float32, unit=unit)
        assert tensor.is_pinned() and tensor[-1:].is_pinned()
        tensor.copy_(torch.arange(SIZE // 4, dtype=torch.float32))
        for part in tensor.split(UNIT // 4):
            there = part.to("cuda", non_blocking=True)
            torch.cuda.synchronize()
            assert torch.equal(there.cpu(), part)
        del tensor, part
