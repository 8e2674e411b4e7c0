#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The memory tests of the Linux Test Project, where its source is at hand: no verdict of
# theirs may be one that only a run with the shim gives.  Debian has no package of it:
#
#   git clone https://github.com/linux-test-project/ltp
#   make check ONLY=ltp LTP_SOURCE=$PWD/ltp
#
# Where it is not at hand, ktask/tests/preload compares the same calls, made at random
# and one by one, by programs of our own.

load software.bash

# What is shown of a failure is what compare says.
teardown() {
	:
}

LTP=$BATS_TEST_DIRNAME/../ltp

@test "memory tests of LTP say the same with and without the shim" {
	[ -n "${LTP_SOURCE:-}" ] ||
		skip "no source of LTP: make check LTP_SOURCE=DIRECTORY"
	run "$LTP/build" "$LTP_SOURCE" "$KTASK_BUILD/ltp"
	[ "$status" -ne 77 ] || skip "$output"
	[ "$status" -eq 0 ]
	"$LTP/compare" "$KTASK_BUILD" "${lines[-1]}"
}
