# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Packs the wheel, for `make wheel` and for pip (as a build backend, PEP 517).

A wheel is a zip file with a list of its files, so nothing has to be fetched to make
one.  Owns the platform tag: the oldest glibc that has all symbols which the library
wants.  Does not compile: the Makefile does.

    python3 wheel_backend.py EXTENSION VERSION DIR      prints the wheel's name
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# What every Linux with glibc has, as all manylinux tags say; the library wants no other.
ALLOWED = re.compile(
    r"^(lib(c|m|dl|rt|pthread)\.so\.\d+|libgcc_s\.so\.1|ld-linux[\w-]*\.so\.\d+)$"
)


def platform_tag(library: Path) -> str:
    """manylinux_2_N_ARCH, by what the library asks of the system."""
    said = subprocess.run(
        ["readelf", "--wide", "--dynamic", "--version-info", library],
        check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"},
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", said)
    foreign = [name for name in needed if not ALLOWED.match(name)]
    if foreign or not needed:
        raise SystemExit(f"ktask: packing the wheel: it would need {foreign}")
    glibc = max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", said))
    return f"manylinux_2_{glibc}_{os.uname().machine}"


def metadata(project: dict[str, Any], version: str) -> str:
    return "\n".join([
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Classifier: {name}" for name in project["classifiers"]),
        "Description-Content-Type: text/markdown",
        "",
        (HERE / project["readme"]).read_text(),
    ])


def record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"{name},sha256={digest.decode()},{len(data)}\n"


def contents(library: Path, version: str, tag: str) -> dict[str, bytes]:
    with open(HERE / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    info = f"ktask-{version}.dist-info"
    files = {
        f"ktask/{path.name}": path.read_bytes()
        for path in sorted((HERE / "ktask").iterdir())
        if path.suffix in {".py", ".pyi", ".typed"}
    }
    files["ktask/_native.abi3.so"] = library.read_bytes()
    files[f"{info}/METADATA"] = metadata(project, version).encode()
    files[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: ktask\nRoot-Is-Purelib: false\n"
        f"Tag: {tag}\n"
    ).encode()
    record = "".join(record_line(*item) for item in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    return files


def pack(library: Path, version: str, directory: Path) -> str:
    """The same bytes for the same input: no dates."""
    tag = f"cp311-abi3-{platform_tag(library)}"
    name = f"ktask-{version}-{tag}.whl"
    with zipfile.ZipFile(directory / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in contents(library, version, tag).items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o755 if path.endswith(".so") else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, data)
    return name


# ---- what pip calls ----


def _top() -> Path:
    for directory in HERE.parents:
        if (directory / "Makefile").exists() and (directory / "mk").is_dir():
            return directory
    raise SystemExit("ktask: building the wheel: this is no clone of the tree")


def build_wheel(
    wheel_directory: str,
    config_settings: object = None,
    metadata_directory: str | None = None,
) -> str:
    top = _top()
    said = subprocess.run(
        ["make", "--no-print-directory", "-s", "-C", top,
         f"PYTHON={sys.executable}", "wheel"],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    made = top / said.split()[-1]
    shutil.copy(made, wheel_directory)
    return made.name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    raise SystemExit("ktask: there is no source archive: build in a clone")


if __name__ == "__main__":
    print(pack(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
