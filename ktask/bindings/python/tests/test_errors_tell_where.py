# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What failed, with errno and the first byte; of files, each that failed."""

import errno
import os
import resource

import pytest
from conftest import PAGE, Memory, forbid, pages_present

import ktask


@pytest.mark.parametrize("begin", [0, 1, 100])
@pytest.mark.parametrize("bad", [PAGE, 5 << 20, (8 << 20) - PAGE])
def test_the_first_byte_that_failed(begin, bad):
    memory = Memory(8 << 20)
    forbid(memory, bad, PAGE)
    view = memoryview(memory)[begin:]
    with pytest.raises(ktask.Error) as raised:
        ktask.populate(view)
    view.release()
    assert raised.value.errno == errno.EFAULT
    assert raised.value.offset == bad - begin
    assert f"at byte {bad - begin}: Bad address" in str(raised.value)
    assert isinstance(raised.value, OSError)


def test_the_first_byte_is_never_before_the_buffer():
    memory = Memory(PAGE)
    forbid(memory, 0, PAGE)
    view = memoryview(memory)[100:]
    with pytest.raises(ktask.Error) as raised:
        ktask.populate(view)
    view.release()
    assert raised.value.offset == 0


def test_a_file_that_became_shorter(tmp_path):
    import mmap

    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    with open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
        file.truncate(10 * PAGE)
        with pytest.raises(ktask.Error) as raised:
            ktask.populate(memory)
    assert (raised.value.errno, raised.value.offset) == (errno.EFAULT, 10 * PAGE)


def test_the_limit_on_locked_memory():
    memory = Memory(1 << 20)
    child = os.fork()
    if not child:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 10, 64 << 10))
            if os.getuid() == 0:
                os.setuid(65534)
            ktask.lock(memory)
        except ktask.Error as error:
            status = error.errno
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # EPERM where nothing at all may be locked.
    assert status in (errno.ENOMEM, errno.EPERM)
    assert pages_present(memory) == 0


def test_all_files_that_failed(tmp_path):
    good = tmp_path / "good"
    good.write_bytes(b"x" * 100000)
    missing, directory = tmp_path / "missing", tmp_path
    with pytest.raises(ktask.Error) as raised:
        ktask.warm([good, missing, directory])
    error = raised.value
    assert error.errno == errno.ENOENT
    assert error.filename == missing
    assert [failure.errno for failure in error.failures] == [
        errno.ENOENT, errno.EISDIR,
    ]


def test_a_descriptor_that_is_closed():
    with pytest.raises(ktask.Error) as raised:
        ktask.warm(1 << 20)
    assert raised.value.errno == errno.EBADF
