# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What README.md and doc/python.md tell people to write runs as it stands there.

Only sizes are smaller, and tqdm need not be installed.
"""

import pathlib
import re
import sys
import types

import pytest

pytest.importorskip("numpy")

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
PAGES = [PACKAGE / "README.md", PACKAGE.parents[1] / "doc" / "python.md"]
FILES = ["model-1.safetensors", "model-2.safetensors", "model/a.safetensors"]
# Less than an ordinary user may lock.
BYTES = 1 << 20


class Bar:
    """What these examples use of tqdm."""

    last = None

    def __init__(self, *, total, **_):
        self.total = total
        self.done = 0
        Bar.last = self

    def update(self, count):
        self.done += count

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def examples(page):
    text = page.read_text()
    found = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return re.sub(r"\b\d+ << 30\b", str(BYTES), "".join(found))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_they_run(page, tmp_path, monkeypatch):
    bar = types.ModuleType("tqdm")
    bar.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", bar)
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(5000))
    served = []
    code = examples(page)
    assert str(BYTES) in code

    Bar.last = None
    exec(code, {"tqdm": Bar, "serve": served.append})

    assert Bar.last.done == Bar.last.total == BYTES
    assert len(served) == code.count("serve(cache)")
