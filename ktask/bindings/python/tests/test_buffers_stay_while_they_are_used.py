# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What a call works on can be neither resized nor closed; afterwards it can."""

import pytest
from conftest import Memory

import ktask

SIZE = 64 << 20


def test_a_bytearray_is_not_resized():
    memory = bytearray(SIZE)
    seen = []

    def progress(_):
        with pytest.raises(BufferError):
            memory.extend(b"more")
        seen.append(len(memory))

    ktask.populate(memory, progress=progress)
    assert set(seen) == {SIZE}
    memory.extend(b"more")


def test_a_mapping_is_not_closed():
    memory = Memory(SIZE)

    def progress(_):
        with pytest.raises(BufferError):
            memory.close()
        with pytest.raises(BufferError):
            memory.resize(4096)

    ktask.populate(memory, progress=progress)
    memory.close()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_also_after_an_exception(error):
    memory = bytearray(SIZE)

    def progress(_):
        raise error

    with pytest.raises(error):
        ktask.populate(memory, progress=progress)
    memory.extend(b"more")


def test_also_after_arguments_were_refused():
    memory = bytearray(10)
    with pytest.raises(TypeError):
        ktask.populate(memory, progress=1)
    memory.extend(b"more")


def test_a_call_in_a_progress_function():
    inner = bytearray(SIZE)
    told = []

    def progress(_):
        if not told:
            told.append(ktask.populate(inner).bytes)

    ktask.populate(bytearray(SIZE), progress=progress)
    assert told == [SIZE]
