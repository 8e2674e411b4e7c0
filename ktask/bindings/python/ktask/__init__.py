# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Large calls that keep one thread in the kernel, done by several.

    import ktask, numpy

    cache = numpy.empty(8 << 30, numpy.uint8)
    ktask.populate(cache)                   # all pages are there
    with ktask.locked(cache):               # and stay
        ...
    ktask.warm("weights.safetensors")       # in the page cache

Memory is anything with the buffer protocol (bytearray, mmap, numpy arrays,
memoryview), or a torch tensor of the CPU.  It must be contiguous.  Pages at its
edges, which it may share with other objects, are done as a whole.

While a call works, the GIL is released, the buffer cannot be resized or closed, and
Ctrl-C ends the call.  ``progress`` is called with the number of bytes that were done
since its last call, which is what ``tqdm.update`` takes, in the thread that called.
An exception that it raises ends the call.

``threads`` is the most that work, the caller included; 0: as many as pay.
``deadline`` is in seconds; behind it a call fails with DeadlineError.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

try:
    from ktask import _native
except ImportError as error:
    from ktask._missing import explain

    raise ImportError(explain(error)) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any

    from typing_extensions import Buffer

    from ktask._torch import pinned_empty as pinned_empty

    Progress = Callable[[int], object]
    # A file: its path, its descriptor, or what has a fileno().
    File = str | bytes | os.PathLike[str] | os.PathLike[bytes] | int | Any

__all__ = [
    "DeadlineError",
    "Error",
    "Helpers",
    "Job",
    "Limit",
    "Registration",
    "Result",
    "helpers",
    "jobs",
    "limits",
    "lock",
    "locked",
    "pinned_empty",
    "populate",
    "register",
    "register_cuda",
    "trim",
    "unlock",
    "unregister",
    "warm",
]

__version__: str = _native.get_version()


class Error(OSError):
    """A call failed: errno, strerror, filename, and where.

    ``offset`` is the first byte that failed, in the memory or the file that was
    given; None where no byte has: a deadline, or a limit found out before.
    ``failures`` has an Error for each file that failed.
    """

    offset: int | None = None
    failures: tuple[Error, ...] = ()


class DeadlineError(Error, TimeoutError):
    """The deadline has passed."""


class Result(NamedTuple):
    """What a call did."""

    bytes: int
    chunks: int
    threads: int  # that did at least one chunk
    wall_ns: int
    cpu_ns: int  # of all threads


class Limit(NamedTuple):
    """One thing that limits the threads of a call."""

    name: str
    threads: int
    why: str


class Job(NamedTuple):
    """A job that runs on this machine, of any process."""

    pid: int
    uid: int
    name: str
    helpers: int
    wanted: int
    units_done: int
    units_total: int
    elapsed_ns: int
    remaining_ns: int  # 0: unknown


class Helpers(NamedTuple):
    """Helper threads of this user."""

    used: int
    limit: int
    shared: bool  # False: this process sees only its own
    cut: bool  # True: there may be more jobs than are told


def _failed(what: str, code: int, offset: int | None, file: Any = None) -> Error:
    import errno

    where = "" if offset is None else f" at byte {offset}"
    kind = DeadlineError if code == errno.ETIMEDOUT else Error
    error = kind(code, f"{what}{where}: {os.strerror(code)}", file)
    error.offset = offset
    return error


def _memory(memory: Any) -> Any:
    """What native.c takes: a buffer as it is, a tensor by its address, and kept."""
    if not hasattr(memory, "data_ptr"):
        return memory
    if memory.device.type != "cpu":
        raise BufferError(f"the tensor is on {memory.device}, not in memory")
    if not memory.is_contiguous():
        raise BufferError("the tensor is not contiguous")
    return memory.data_ptr(), memory.numel() * memory.element_size(), False, memory


def _deadline_ns(deadline: float | None) -> int:
    if deadline is None:
        return 0
    if not 0 <= deadline < 1 << 33:
        raise ValueError("deadline must be seconds from now")
    return int(deadline * 1e9) or 1


def _threads(threads: int) -> int:
    if not 0 <= threads < 1 << 31:
        raise ValueError("threads must be 0 or more")
    return threads


def _on_memory(
    what: str,
    memory: Any,
    flags: int,
    readonly_flags: int,
    threads: int = 0,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Result:
    outcome = _native.run_memory(
        what,
        _memory(memory),
        flags,
        readonly_flags,
        _threads(threads),
        0,
        _deadline_ns(deadline),
        progress,
    )
    if outcome[0]:
        offset = outcome[1] if outcome[1] >= 0 else None
        raise _failed(what, outcome[0], offset)
    return Result._make(outcome[2:])


def populate(
    memory: Buffer | Any,
    *,
    read: bool | None = None,
    touch: bool = False,
    threads: int = 0,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Result:
    """Make all pages of memory present.

    Pages are made as if they were written, those of read-only memory as if they were
    read; the contents stay.  ``read`` decides otherwise.  ``touch`` accesses each page
    instead of asking the kernel.  What was made before a failure stays.
    """
    flags = _native.POPULATE_READ if read else 0
    if touch:
        flags |= _native.POPULATE_TOUCH
    readonly_flags = -1 if read is False else _native.POPULATE_READ
    return _on_memory(
        "populate", memory, flags, readonly_flags, threads, deadline, progress
    )


def lock(
    memory: Buffer | Any,
    *,
    read: bool = False,
    threads: int = 0,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Result:
    """Populate memory and lock it, as mlock(2) does.

    Locks do not add up: one unlock() ends them.  Freeing the memory does, too.  A
    call that fails leaves as much locked as mlock(2) does, one that is ended by a
    deadline or an exception nothing more than before.
    """
    flags = _native.POPULATE_READ if read else 0
    return _on_memory("lock", memory, flags, 0, threads, deadline, progress)


def unlock(memory: Buffer | Any) -> Result:
    """End the locks of memory, as munlock(2) does."""
    return _on_memory("unlock", memory, 0, 0)


class locked:
    """Lock memory for a block: ``with ktask.locked(cache):``; takes what lock() does."""

    def __init__(
        self,
        memory: Buffer | Any,
        *,
        read: bool = False,
        threads: int = 0,
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._memory = memory
        self._how = (_native.POPULATE_READ if read else 0, 0, threads, deadline,
                     progress)
        self._held: memoryview | None = None

    def __enter__(self) -> Result:
        # As long as it is locked it must not be given back.
        if not hasattr(self._memory, "data_ptr"):
            self._held = memoryview(self._memory)
        try:
            return _on_memory("lock", self._memory, *self._how)
        except BaseException:
            self._release()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            unlock(self._memory)
        finally:
            self._release()

    def _release(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None


def _file(file: File, offset: int, length: int | None) -> Any:
    if isinstance(file, int):
        return None, file, offset, length
    if hasattr(file, "fileno"):
        return None, file.fileno(), offset, length
    return os.fsencode(file), -1, offset, length


def _bytes_of(files: list[Any]) -> int:
    """How many there are to be read; what cannot be told is left out."""
    total = 0
    for path, descriptor, offset, length in files:
        try:
            size = os.stat(descriptor if path is None else path).st_size - offset
        except (OSError, ValueError):
            continue
        total += max(0, size if length is None else min(size, length))
    return total


def warm(
    files: File | Iterable[File],
    *,
    offset: int = 0,
    length: int | None = None,
    direct: bool = False,
    threads: int = 0,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Result:
    """Read files, or a range of each, into the page cache.

    A file is a path, a descriptor, or what has a ``fileno()``.  One that fails does not
    keep the others from being read; the error has them all in ``failures``.  ``direct``
    reads past the page cache, which warms what lies below.
    """
    if isinstance(files, (str, bytes, int, os.PathLike)) or hasattr(files, "fileno"):
        files = [files]
    if offset < 0 or (length is not None and length < 0):
        raise ValueError("offset and length must be 0 or more")
    files = list(files)
    ranges = [_file(file, offset, length) for file in files]
    outcome, failures = _native.run_files(
        "warm",
        ranges,
        _bytes_of(ranges) if progress is not None else 0,
        _native.FILE_DIRECT if direct else 0,
        _threads(threads),
        0,
        _deadline_ns(deadline),
        progress,
    )
    if outcome[0]:
        errors = tuple(
            _failed("warm", code, at, files[index]) for index, code, at in failures
        )
        # A deadline is no failure of a file.
        error = next((e for e in errors if e.errno == outcome[0]), None)
        if error is None:
            error = _failed("warm", outcome[0], None)
        error.failures = errors
        raise error
    return Result._make(outcome[2:])


class Registration:
    """Memory that is registered with a device; it cannot be resized or closed.

    Until unregister(), the end of its ``with`` block, or until nobody has it.  So long
    the memory lives, a tensor as well.  While unregister() works everything else fails
    with RuntimeError, in its ``progress`` and in other threads.
    """

    def __init__(self, what: str, held: object, result: Result) -> None:
        self._what = what
        self._held = held
        self.result = result  #: what registering did; chunks are pieces

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """The pieces that are registered now, as offsets and lengths."""
        return _native.list_pieces(self._held)[1]

    @property
    def longest_ns(self) -> int:
        """The longest call of the device."""
        return _native.list_pieces(self._held)[0]

    def unregister(
        self, *, deadline: float | None = None, progress: Progress | None = None
    ) -> Result:
        """Take all pieces back, the last one first; again does nothing.

        A piece whose function fails is given up.  After a deadline or an exception of
        ``progress`` the rest is registered as before, and the call can be repeated.
        """
        outcome, cuda = _native.unregister_memory(
            self._held, 0, _deadline_ns(deadline), progress
        )
        if outcome[0]:
            raise _failed_piece("un" + self._what, outcome, cuda)
        return Result._make(outcome[2:])

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()


def _failed_piece(what: str, outcome: tuple[int, ...], cuda: int) -> Error:
    error = _failed(what, outcome[0], outcome[1] if outcome[1] >= 0 else None)
    if cuda:
        error.strerror = f"{error.strerror} (cudaError {cuda})"
    return error


def _register(
    what: str,
    memory: Any,
    device: Any,
    cuda_flags: int,
    present: bool,
    read: bool,
    stall: float,
    unit: int,
    max_piece: int,
    threads: int,
    deadline: float | None,
    progress: Progress | None,
) -> Registration:
    if not 0 < stall < 4000:
        raise ValueError("stall must be seconds")
    if not (0 <= unit < 1 << 63 and 0 <= max_piece < 1 << 63):
        raise ValueError("unit and max_piece must be bytes")
    flags = _native.REGISTER_PRESENT if present else 0
    if read:
        flags |= _native.REGISTER_READ
    outcome, cuda, held = _native.register_memory(
        _memory(memory),
        device,
        cuda_flags,
        flags,
        int(stall * 1e6) or 1,
        unit,
        max_piece,
        _threads(threads),
        _deadline_ns(deadline),
        progress,
    )
    if outcome[0]:
        raise _failed_piece(what, outcome, cuda)
    return Registration(what, held, Result._make(outcome[2:]))


def register(
    memory: Buffer | Any,
    add: Callable[[int, int], object],
    take: Callable[[int, int], object],
    *,
    present: bool = False,
    read: bool = False,
    stall: float = 0.05,
    unit: int = 0,
    max_piece: int = 0,
    threads: int = 0,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Registration:
    """Register memory with a device, piece by piece.

    ``add(address, length)`` registers a piece, ``take(address, length)`` takes it back;
    what they return does not count, an exception ends the call.  They run in the thread
    that called, in order.  Pages are made ahead of them by several threads.  Pieces grow
    and shrink so that no call of ``add`` takes longer than ``stall`` seconds; edges
    between them lie at multiples of ``unit`` bytes from the beginning.

    If it fails, every piece is taken back, the last one first.  ``present``: pages are
    there; ``read``: the device only reads.
    """
    if not (callable(add) and callable(take)):
        raise TypeError("add and take must be callable")
    return _register(
        "register", memory, (add, take), 0, present, read, stall, unit, max_piece,
        threads, deadline, progress,
    )


def register_cuda(
    memory: Buffer | Any,
    *,
    flags: int = 0,
    library: str | None = None,
    present: bool = False,
    read: bool = False,
    stall: float = 0.05,
    unit: int = 0,
    max_piece: int = 0,
    threads: int = 0,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Registration:
    """Register memory for the GPUs of this process, by cudaHostRegister; see register().

    A copy that a GPU makes must not cross from one piece into another: ``unit`` is what
    is copied at once, ``unit=len(memory)`` one piece.  ``flags`` are those of
    cudaHostRegister.  ``library``: a path of libcudart; else the one that the process
    uses, as that of torch, or that the system finds.  Without one: ELIBACC.
    """
    return _register(
        "register_cuda", memory, None if library is None else os.fsencode(library),
        flags, present, read, stall, unit, max_piece, threads, deadline, progress,
    )


def unregister(
    registration: Registration,
    *,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Result:
    """Take all pieces of a registration back, as Registration.unregister() does."""
    return registration.unregister(deadline=deadline, progress=progress)


def limits() -> list[Limit]:
    """What would limit a call that began now, and why; the least one holds."""
    return [Limit._make(limit) for limit in _native.list_limits()]


def jobs() -> list[Job]:
    """Jobs of all processes that use more than one thread now."""
    return [Job._make(job) for job in _native.list_jobs()[0]]


def helpers() -> Helpers:
    """How many helper threads this user has, and may have."""
    return Helpers._make(_native.list_jobs()[1])


def trim() -> int:
    """End idle helper threads; how many ended.  Later calls start them again."""
    return _native.trim_helpers()


def __getattr__(name: str) -> Any:
    # Not before it is used: most programs never do.
    if name == "pinned_empty":
        from ktask._torch import pinned_empty

        return pinned_empty
    raise AttributeError(f"module 'ktask' has no attribute '{name}'")
