#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# No data race, no bad access, no undefined step in the applications, and so in
# the runtime as they use it.  Of one rank: Open MPI is not built for that.

load helpers

# clean VARIANT: heat and fwi of that build end well and say nothing else
clean() {
	local bin=$KTEST_BUILD/$1
	[ -x "$bin/heat" ] || skip "not built"
	for how in --json --no-umt --events --behind; do
		run -0 --separate-stderr "$bin/heat" "${small_heat[@]}" \
			--block 40 --every 5 --workers 3 --verify $how
		echo "$stderr"
		[ -z "$stderr" ]
		run -0 --separate-stderr "$bin/fwi" "${small_fwi[@]}" \
			--every 3 --workers 3 --verify $how
		echo "$stderr"
		[ -z "$stderr" ]
	done
}

@test "the thread sanitizer" {
	clean tsan
}

@test "the address and undefined-behaviour sanitizers" {
	clean asan
}
