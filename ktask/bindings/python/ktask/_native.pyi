# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What native.c has."""

from collections.abc import Callable

# errno or 0; first byte that failed or -1; bytes; chunks; threads; wall, CPU in ns
_Outcome = tuple[int, int, int, int, int, int, int]
# path or None; descriptor; offset; length or None: to the end
_File = tuple[bytes | None, int, int, int | None]

POPULATE_READ: int
POPULATE_TOUCH: int
FILE_DIRECT: int
FIXED: int
REGISTER_PRESENT: int
REGISTER_READ: int

def run_memory(
    operation: str,
    memory: object,
    flags: int,
    readonly_flags: int,
    threads: int,
    options: int,
    deadline_ns: int,
    progress: Callable[[int], object] | None,
    /,
) -> _Outcome: ...
def run_files(
    operation: str,
    files: list[_File],
    total: int,
    flags: int,
    threads: int,
    options: int,
    deadline_ns: int,
    progress: Callable[[int], object] | None,
    /,
) -> tuple[_Outcome, list[tuple[int, int, int]]]: ...
def register_memory(
    memory: object,
    device: tuple[Callable[[int, int], object], Callable[[int, int], object]]
    | bytes
    | None,
    cuda_flags: int,
    flags: int,
    stall_us: int,
    unit: int,
    max_piece: int,
    threads: int,
    deadline_ns: int,
    progress: Callable[[int], object] | None,
    /,
) -> tuple[_Outcome, int, object]: ...
def unregister_memory(
    registration: object,
    threads: int,
    deadline_ns: int,
    progress: Callable[[int], object] | None,
    /,
) -> tuple[_Outcome, int]: ...
def list_pieces(registration: object, /) -> tuple[int, list[tuple[int, int]]]: ...
def list_limits() -> list[tuple[str, int, str]]: ...
def list_jobs() -> tuple[
    list[tuple[int, int, str, int, int, int, int, int, int]],
    tuple[int, int, bool, bool],
]: ...
def trim_helpers() -> int: ...
def get_version() -> str: ...
