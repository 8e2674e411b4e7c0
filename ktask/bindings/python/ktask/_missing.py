# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Why the C part of the package cannot be loaded here."""

import os
import platform
import sys


def libc() -> str:
    """The C library of this system, as people call it."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "an unknown C library"
    except (AttributeError, OSError, ValueError):
        return "a C library that is not glibc (musl?)"


def built_for() -> str:
    """The platform tag of the wheel that the package came in."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution("ktask").read_text("WHEEL") or ""
    except PackageNotFoundError:
        return "no installed wheel"
    tags = [line[5:] for line in text.splitlines() if line.startswith("Tag: ")]
    return ", ".join(tags) or "no known platform"


def explain(error: ImportError) -> str:
    """One message: what is needed, what is here, what the loader said."""
    return (
        "ktask: its library cannot be loaded. It was built for "
        f"{built_for()}; here are Python {platform.python_version()}, "
        f"{platform.machine()} {sys.platform}, {libc()}. "
        f"On another system build it from the sources: make wheel. ({error})"
    )
