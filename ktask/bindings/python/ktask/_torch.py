# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Pinned tensors for torch, whose pages several threads make.

torch.empty(pin_memory=True) leaves it to the driver to make the pages, by one thread
and under its locks.  Here they are made first; the driver then pins what is there.
"""

from __future__ import annotations

import importlib
import mmap
import os
from typing import Any

import ktask

_HUGE = 2 << 20


def _load_torch() -> Any:
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise RuntimeError("ktask: pinned_empty: torch is not installed") from error
    if not torch.cuda.is_available():
        raise RuntimeError("ktask: pinned_empty: torch has no CUDA device here")
    return torch


class _Pinned(mmap.mmap):
    """Memory that is registered with CUDA until nobody has a view of it."""

    # With the process: a child of a fork has registered nothing.
    _registered: tuple[Any, int, int] | None = None

    def register(self, cudart: Any, address: int) -> None:
        error = cudart.cudaHostRegister(address, len(self), 0)
        if error != cudart.cudaError.success:
            raise RuntimeError(f"ktask: pinned_empty: cudaHostRegister: {error}")
        self._registered = cudart, address, os.getpid()

    def __del__(self) -> None:
        if self._registered:
            cudart, address, process = self._registered
            self._registered = None
            if process == os.getpid():
                cudart.cudaHostUnregister(address)


def pinned_empty(
    *size: Any,
    dtype: Any = None,
    threads: int = 0,
    progress: ktask.Progress | None = None,
) -> Any:
    """A torch tensor in pinned memory, as torch.empty(*size, pin_memory=True).

    Its pages are made by several threads, as huge ones where the system permits that,
    and then registered with CUDA in one call: copies that cross the edge of two
    registrations fail.  The memory is unregistered and given back with the last tensor
    that uses it.  RuntimeError where torch or CUDA are missing, or CUDA refuses.
    """
    torch = _load_torch()
    dtype = dtype or torch.get_default_dtype()
    shape = torch.Size(size[0] if len(size) == 1 and not isinstance(size[0], int)
                       else size)
    count = shape.numel()
    if not count:
        return torch.empty(shape, dtype=dtype, pin_memory=True)
    length = -(-count * dtype.itemsize // _HUGE) * _HUGE
    memory = _Pinned(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        pass  # a kernel without them
    ktask.populate(memory, threads=threads, progress=progress)
    flat = torch.frombuffer(memory, dtype=dtype, count=count)
    memory.register(torch.cuda.cudart(), flat.data_ptr())
    return flat.view(shape)
