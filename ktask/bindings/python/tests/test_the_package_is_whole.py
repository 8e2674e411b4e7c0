# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What is in the wheel, what it needs, and what is said where it cannot be loaded."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ktask

PACKAGE = Path(ktask.__file__).parent


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120,
        **options,
    )


def test_it_is_the_one_that_was_installed():
    assert "site-packages" in str(PACKAGE)
    assert (PACKAGE / "py.typed").exists()


def test_every_public_name_is_there_and_explained():
    for name in ktask.__all__:
        assert inspect.getdoc(getattr(ktask, name)), name
    with pytest.raises(AttributeError):
        ktask.no_such_name


def test_the_library_needs_little():
    readelf = shutil.which("readelf")
    if not readelf:
        pytest.skip("no readelf")
    (library,) = PACKAGE.glob("*.so")
    said = subprocess.run([readelf, "-dW", library], capture_output=True, text=True)
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", said.stdout)
    assert "libc.so.6" in needed
    # Of the compiler, and there wherever C++ is.
    assert all(re.match(r"libc\.so|libgcc_s\.so\.1|ld-linux", name) for name in needed)


def wheel():
    path = os.environ.get("KTASK_WHEEL")
    if not path:
        pytest.skip("KTASK_WHEEL is not set")
    return Path(path)


def test_every_file_is_that_of_the_wheel():
    with zipfile.ZipFile(wheel()) as archive:
        names = [name for name in archive.namelist() if name.startswith("ktask/")]
        assert names
        for name in names:
            assert (PACKAGE.parent / name).read_bytes() == archive.read(name), name


def test_the_tag_is_what_auditwheel_says():
    pytest.importorskip("auditwheel", reason="no auditwheel")
    said = run("-m", "auditwheel", "show", wheel())
    tag = wheel().stem.split("-")[-1]
    assert said.returncode == 0, said.stderr
    assert re.search(rf'"{tag}"', said.stdout), said.stdout


def test_it_needs_no_compiler(tmp_path):
    (name,) = [n for n in zipfile.ZipFile(wheel()).namelist() if n.endswith(".so")]
    assert name == "ktask/_native.abi3.so"
    said = run(
        "-m", "pip", "install", "--no-index", "--target", tmp_path, wheel(),
        env={**os.environ, "PATH": "/nonexistent", "CC": "false"},
    )
    assert said.returncode == 0, said.stderr


def test_pip_refuses_it_on_musl(tmp_path):
    said = run(
        "-m", "pip", "download", "--no-index", "--no-deps", "--only-binary=:all:",
        "--platform", "musllinux_1_2_x86_64", "--python-version", "3.12",
        "-d", tmp_path, wheel(),
    )
    assert said.returncode != 0
    assert "not a supported wheel on this platform" in said.stderr


def broken_copy(directory, library):
    """The package with another library in place of its own."""
    copy = directory / "ktask"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    if library is not None:
        (copy / "_native.abi3.so").write_bytes(library)
    return directory


@pytest.mark.parametrize("library", [None, b"", b"\x7fELF", b"no library" * 100])
def test_a_library_that_cannot_be_loaded(tmp_path, library):
    said = run(
        "-c", "import ktask", cwd=broken_copy(tmp_path, library),
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert said.returncode == 1
    last = said.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ktask: its library cannot be loaded.")
    assert "make wheel" in last


def test_a_library_that_wants_another_libc(tmp_path):
    # As on musl: the loader finds no libc.so.6.
    (library,) = PACKAGE.glob("*.so")
    data = library.read_bytes().replace(b"libc.so.6\0", b"libx.so.6\0")
    program = (
        "import os\n"
        "def confstr(name): raise ValueError(name)\n"
        "os.confstr = confstr\n"
        "import ktask\n"
    )
    said = run(
        "-c", program, cwd=broken_copy(tmp_path, data),
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    last = said.stderr.strip().splitlines()[-1]
    assert "a C library that is not glibc (musl?)" in last
    assert "libx.so.6" in last


def test_the_command(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(1000))
    assert run("-m", "ktask", "--version").stdout.strip() == ktask.__version__
    assert " cpus " in run("-m", "ktask", "limits").stdout
    assert "helpers work" in run("-m", "ktask", "jobs").stdout
    assert run("-m", "ktask", "warm", file).stdout.startswith("1000 bytes, ")
    missing = run("-m", "ktask", "warm", file, tmp_path / "a", tmp_path / "b")
    assert missing.returncode == 1
    assert missing.stderr.count("No such file or directory") == 2
    assert run("-m", "ktask").returncode == 2
