# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""With Python's own exceptions, before anything is done."""

import pytest
from conftest import PAGE, Memory, pages_present

import ktask


def test_views_with_gaps():
    with pytest.raises(BufferError, match="contiguous"):
        ktask.populate(memoryview(bytearray(100))[::2])
    numpy = pytest.importorskip("numpy", reason="no numpy")
    for view in (numpy.zeros(100)[::2], numpy.zeros((9, 9))[:, 1:3]):
        with pytest.raises((BufferError, ValueError), match="contiguous"):
            ktask.populate(view)


@pytest.mark.parametrize("what", [None, 1, "text", object(), [1, 2], ktask, (1, 2)])
def test_what_is_no_memory(what):
    with pytest.raises(TypeError):
        ktask.populate(what)


@pytest.mark.parametrize(
    "options",
    [
        {"threads": -1},
        {"threads": 1 << 40},
        {"deadline": -1},
        {"deadline": float("nan")},
        {"deadline": float("inf")},
    ],
)
def test_numbers_that_make_no_sense(options):
    memory = Memory(4 * PAGE)
    with pytest.raises(ValueError):
        ktask.populate(memory, **options)
    assert pages_present(memory) == 0


@pytest.mark.parametrize("options", [{"threads": "2"}, {"progress": 1}, {"deadline": "1"}])
def test_wrong_types(options):
    memory = Memory(4 * PAGE)
    with pytest.raises(TypeError):
        ktask.populate(memory, **options)
    assert pages_present(memory) == 0


def test_ranges_of_files():
    for options in ({"offset": -1}, {"length": -1}):
        with pytest.raises(ValueError):
            ktask.warm("/dev/null", **options)
    with pytest.raises(TypeError):
        ktask.warm([None])
    with pytest.raises(ValueError, match="null byte"):
        ktask.warm("a\0b")
    with pytest.raises(OverflowError):
        ktask.warm("/dev/null", length=1 << 70)


def test_released_views():
    view = memoryview(bytearray(10))
    view.release()
    with pytest.raises(ValueError, match="released"):
        ktask.populate(view)
