#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A program that saves and restores another one, whose memory is made ahead of its
# touches, finds what that has touched, and otherwise zeros.

load shim.bash

unset KTASK_RUN_MIN
# Other tests run beside these.
export KTASK_OVERLOAD=ignore

snapshots() {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for mode in ahead-small ahead; do
		: >"$REPORT"
		KTASK_RUN_OPS=$mode run shimmed timeout 300 \
			"$PROGRAMS/ahead-snapshots" "$@"
		echo "$mode $*: $status $output"
		cat "$REPORT"
		[[ $output != "nothing was made ahead"* ]] ||
			skip "no helper got a CPU"
		[[ $output != "nothing may be traced"* ]] ||
			skip "$output"
		[ "$status" -eq 0 ]
		[ "$output" = ok ]
	done
}

@test "of a program that a signal has stopped" {
	snapshots stop
}

@test "of a program all of whose threads are traced" {
	snapshots trace
}
