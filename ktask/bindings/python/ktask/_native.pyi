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
def list_limits() -> list[tuple[str, int, str]]: ...
def list_jobs() -> tuple[
    list[tuple[int, int, str, int, int, int, int, int, int]],
    tuple[int, int, bool, bool],
]: ...
def trim_helpers() -> int: ...
def get_version() -> str: ...
