#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# NumPy allocates and frees large arrays; checksums of all that it computed.

load software.bash

# Debian's python: another one would need a NumPy of its own.
PYTHON=/usr/bin/python3

@test "arrays of the heap, of mappings and of files" {
	"$PYTHON" -c 'import numpy, mmap; mmap.MAP_POPULATE' 2>/dev/null ||
		skip "no NumPy: make deps NEED=software"
	same software "$PYTHON" "$BATS_TEST_DIRNAME/arrays.py" 24
	[ "$(taken mmap call)" -ge 5 ]
	[ "$(taken madvise call)" -ge 4 ]
	[ "$(taken munmap call)" -ge 4 ]
}
