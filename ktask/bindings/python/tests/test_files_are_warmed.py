# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Files by path, descriptor and object; all of one, or a range."""

import pytest

import ktask


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 40000)
    return path


def test_by_any_name(path):
    size = path.stat().st_size
    with open(path, "rb") as file:
        for name in (path, str(path), bytes(path), file, file.fileno()):
            assert ktask.warm(name).bytes == size
        assert ktask.warm([path, file, str(path)]).bytes == 3 * size
        assert ktask.warm(iter([path])).bytes == size
        assert file.tell() == 0


def test_a_range(path):
    size = path.stat().st_size
    assert ktask.warm(path, offset=100, length=1000).bytes == 1000
    assert ktask.warm(path, offset=size - 10, length=100).bytes == 10
    assert ktask.warm(path, offset=size + 10).bytes == 0


def test_none():
    assert ktask.warm([]).bytes == 0


def test_past_the_page_cache(path):
    try:
        assert ktask.warm(path, direct=True).bytes == path.stat().st_size
    except ktask.Error as error:
        pytest.skip(f"this file system cannot: {error}")


def test_progress_adds_up(path):
    told = []
    ktask.warm([path] * 5, progress=told.append)
    assert sum(told) == 5 * path.stat().st_size
