# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What is still registered when the interpreter ends: nobody is told of anything.

By then modules may have lost their names, and CUDA may refuse each call.
"""

import pytest
from conftest import run_python

# cudaErrorCudartUnloading; cudaErrorUnknown
UNLOADING, UNKNOWN = 4, 999

# A pinned tensor and a registration, and who has them.
PROGRAM = """
import atexit, builtins, ctypes, functools, sys, threading
import ktask
from conftest import Memory

kind, holder, library, answer = sys.argv[1:]
if kind == "torch":
    import torch
if kind == "made up":
    from made_up_torch import make_torch
    sys.modules["torch"] = make_torch(lambda: None)
if library:
    if kind == "torch":
        torch.cuda.is_available = lambda: True
        torch.cuda.init = lambda: None
    known = ctypes.CDLL(library)
    ctypes.c_int.in_dll(known, "tells").value = 1
    ctypes.c_int.in_dll(known, "take_answer").value = int(answer)
    ktask.register_cuda = functools.partial(ktask.register_cuda, library=library)
have = [ktask.pinned_empty(1000), ktask.register_cuda(Memory(1 << 20), unit=1 << 20)]
if holder == "a cycle":
    have.append(have)
if holder == "a module that lives":
    sys.kept = sys.modules["__main__"]
if holder == "a function":
    def keep(have=have):
        return have
if holder == "sys":
    sys.have = have
if holder == "builtins":
    builtins.have = have
if holder == "an exit handler":
    atexit.register(list, have)
if holder == "a thread":
    threading.Thread(
        target=lambda have: threading.Event().wait(), args=(have,), daemon=True
    ).start()
if holder not in ("a global", "a module that lives"):
    del have
"""


def end_python(kind, holder, library="", answer=0):
    said = run_python(PROGRAM, kind, holder, library, answer)
    assert (said.returncode, said.stderr) == (0, "")
    return said.stdout.count("unregister\n")


@pytest.mark.parametrize("answer", [0, UNLOADING, UNKNOWN])
@pytest.mark.parametrize(
    "holder",
    ["a global", "a cycle", "a module that lives", "a function", "sys", "builtins",
     "an exit handler", "a thread"],
)
def test_nothing_is_said(libcudart, holder, answer):
    calls = end_python("made up", holder, libcudart.path, answer)
    # A thread has it for ever, and who comes last may not be ended.
    assert calls == 2 or (holder in ("an exit handler", "a thread") and not calls)


@pytest.mark.parametrize("answer", [0, UNLOADING])
def test_nothing_is_said_with_the_real_torch(libcudart, answer):
    pytest.importorskip("torch", reason="no torch: make check-torch")
    assert end_python("torch", "a global", libcudart.path, answer) == 2


def test_nothing_is_said_with_a_gpu():
    torch = pytest.importorskip("torch", reason="no torch: make check-torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU here")
    for holder in ("a global", "sys", "a thread"):
        end_python("torch", holder)
