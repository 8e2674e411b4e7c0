# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""On every kind of memory: pages are there after the call, its contents stay."""

import array
import mmap
import tempfile

import pytest
from conftest import PAGE, Memory, forbid, locked_kib, pages_present

import ktask


def test_all_pages_of_a_mapping():
    memory = Memory(32 << 20)
    assert pages_present(memory) == 0
    result = ktask.populate(memory)
    assert result.bytes == 32 << 20
    assert result.threads >= 1
    assert pages_present(memory) == (32 << 20) // PAGE


def test_by_touching():
    memory = Memory(4 << 20)
    ktask.populate(memory, touch=True)
    assert pages_present(memory) == (4 << 20) // PAGE


def test_pages_of_which_a_view_has_a_byte():
    memory = Memory(64 << 20)
    view = memoryview(memory)[PAGE - 1 : 2 * PAGE + 1]
    ktask.populate(view)
    view.release()
    # With huge pages there may be more.
    assert 3 <= pages_present(memory) <= (2 << 20) // PAGE + 2


@pytest.mark.parametrize("call", [ktask.populate, ktask.lock])
@pytest.mark.parametrize(
    "make", [bytearray, lambda n: array.array("B", bytes(n)), Memory]
)
@pytest.mark.parametrize("length", [1, PAGE, 3 * PAGE + 7, 20 << 20])
def test_contents_stay(call, make, length):
    memory = make(length)
    memory[0] = memory[length // 2] = memory[length - 1] = 7
    try:
        call(memory)
    except ktask.Error as error:
        pytest.skip(f"mlock is refused: {error}")
    assert bytes(memory[i] for i in (0, length // 2, length - 1)) == b"\7\7\7"
    ktask.unlock(memory)


def test_arrays_of_numpy():
    numpy = pytest.importorskip("numpy", reason="no numpy")
    flat = numpy.arange(1 << 20, dtype=numpy.int64)
    assert ktask.populate(flat).bytes == flat.nbytes
    matrix = numpy.ones((512, 512), order="F")
    assert ktask.populate(matrix).bytes == matrix.nbytes
    assert ktask.populate(numpy.ones(())).bytes == 8
    assert (flat == numpy.arange(1 << 20)).all() and matrix.all()


def test_empty_buffers():
    assert ktask.populate(bytearray()).bytes == 0
    assert ktask.lock(b"").bytes == 0
    assert ktask.unlock(memoryview(b"")).bytes == 0
    numpy = pytest.importorskip("numpy", reason="no numpy")
    assert ktask.populate(numpy.empty((0, 5))).bytes == 0


def test_read_only_memory_is_made_for_reading():
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * (8 << 20))
        file.flush()
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        assert ktask.populate(memory).bytes == 8 << 20
        assert ktask.populate(memory, read=True).bytes == 8 << 20
        with pytest.raises(BufferError, match="read-only"):
            ktask.populate(memory, read=False)
    assert ktask.populate(bytes(PAGE)).bytes == PAGE


def test_locks_end_with_their_block():
    memory = Memory(64 * PAGE)
    before = locked_kib()
    try:
        with ktask.locked(memory):
            assert locked_kib() == before + 64 * PAGE // 1024
            with pytest.raises(BufferError):
                memory.close()
    except ktask.Error as error:
        pytest.skip(f"mlock is refused: {error}")
    assert locked_kib() == before
    memory.close()


def test_a_lock_that_fails_holds_nothing():
    memory = Memory(8 << 20)
    forbid(memory, 4 << 20, PAGE)
    block = ktask.locked(memory)
    with pytest.raises(ktask.Error):
        block.__enter__()
    memory.close()


@pytest.mark.parametrize("threads", [1, 2, 1000])
def test_with_any_number_of_threads(threads):
    assert 1 <= ktask.populate(Memory(32 << 20), threads=threads).threads <= threads
