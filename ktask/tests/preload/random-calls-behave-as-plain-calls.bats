#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Random sequences of memory calls, with and without the shim: return values,
# errno, the kernel's account of every mapping, and contents are the same.
#
# KTASK_TEST_SEED repeats one sequence; KTASK_TEST_SECONDS goes on for longer:
# `make soak-shim` does for an hour.

load shim.bash
load random.bash

@test "random sequences end the same, call by call" {
	sequences 12
	took mmap munmap madvise
}

# Which pages there are is what it changes.
@test "with --prefault they return the same, and leave the same contents" {
	export KTASK_RUN_OPS=prefault
	sequences 6 contents
	took prefault
}
