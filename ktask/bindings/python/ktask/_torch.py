# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Pinned tensors for torch, whose pages several threads make.

torch.empty(pin_memory=True) leaves it to the driver to make the pages, by one thread
and under its locks.  Here they are made first; the driver then pins what is there.
"""

from __future__ import annotations

import importlib
import mmap
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
    # Until torch has begun to use CUDA it says of no tensor that it is pinned.
    torch.cuda.init()
    return torch


class _Pinned(mmap.mmap):
    """Memory that is registered with CUDA until nobody has a view of it."""

    registration: ktask.Registration | None = None

    def __del__(self) -> None:
        # Its own end unregisters, and needs no module: when Python ends, these may
        # have lost their names.  If CUDA refuses, nobody is told, as with any
        # registration whose last reference goes.
        self.registration = None


def pinned_empty(
    *size: Any,
    dtype: Any = None,
    unit: int = 0,
    threads: int = 0,
    progress: ktask.Progress | None = None,
) -> Any:
    """A torch tensor in pinned memory, as torch.empty(*size, pin_memory=True).

    Its pages are made by several threads, as huge ones where the system permits that,
    and then registered with CUDA: in one call, or, if no copy to a GPU crosses a multiple
    of ``unit`` bytes, in pieces that stall nobody for long.  The memory is unregistered
    and given back with the last tensor that uses it.  RuntimeError where torch or CUDA
    are missing, ktask.Error where memory is, or CUDA refuses.
    """
    torch = _load_torch()
    dtype = dtype or torch.get_default_dtype()
    shape = torch.Size(size[0] if len(size) == 1 and not isinstance(size[0], int)
                       else size)
    count = shape.numel()
    if not count:
        return torch.empty(shape, dtype=dtype, pin_memory=True)
    item = torch.empty((), dtype=dtype).element_size()
    length = -(-count * item // _HUGE) * _HUGE
    memory = _Pinned(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        pass  # a kernel without them
    flat = torch.frombuffer(memory, dtype=dtype, count=count)
    # By address: a registration that held the buffer would hold itself.
    memory.registration = ktask.register_cuda(
        (flat.data_ptr(), length, False),
        unit=unit or length,
        max_piece=0 if unit else length,
        threads=threads,
        progress=progress,
    )
    return flat.view(shape)
