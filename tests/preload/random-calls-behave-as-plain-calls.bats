#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Random sequences of memory calls, with and without the shim: return values,
# errno, the kernel's account of every mapping, and contents are the same.
#
# KTASK_TEST_SEED repeats one sequence; KTASK_TEST_SECONDS goes on for longer
# (3600 for an hour; then also: tests/run --limit).

load shim.bash

NR_CALLS=30

sequence() {
	plain "$PROGRAMS/random-cases" "$1" $NR_CALLS \
		>"$BATS_TEST_TMPDIR/plain"
	shimmed "$PROGRAMS/random-cases" "$1" $NR_CALLS \
		>"$BATS_TEST_TMPDIR/shimmed"
	[ "$(grep -c '^[a-z].*rc=' "$BATS_TEST_TMPDIR/plain")" -gt 5 ] ||
		return 1
	cmp -s "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed" &&
		return
	echo "KTASK_TEST_SEED=$1 differs, < plain, > with the shim:"
	diff "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed" | head -40
	return 1
}

@test "random sequences end the same, call by call" {
	seconds=${KTASK_TEST_SECONDS:-20}
	seed=${KTASK_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
	until=$((SECONDS + seconds))
	for ((nr = 0; nr < 3 || SECONDS < until; nr++)); do
		sequence $((seed + nr))
		[ -z "$KTASK_TEST_SEED" ] || break
	done
	echo "# sequences: $nr, first seed: $seed" >&3
	[ -n "$KTASK_TEST_SEED" ] || {
		grep -q '^ktask: mmap: ' "$REPORT"
		grep -q '^ktask: munmap: ' "$REPORT"
		grep -q '^ktask: madvise: ' "$REPORT"
	}
}
