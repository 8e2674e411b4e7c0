#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A program that touches memory in order, and between the touches maps, unmaps, moves,
# protects, discards and forks, reads and gets the same where its memory is made ahead.

load shim.bash

# Other tests run beside these.
export KTASK_OVERLOAD=ignore

NR_STEPS=40

# walk MODE SEED [ARGUMENT]: plain and shimmed
walk() {
	local mode=$1

	shift
	plain timeout 300 "$PROGRAMS/ahead-walk" "$1" $NR_STEPS ${2:+"$2"} \
		>"$BATS_TEST_TMPDIR/plain"
	[ "$(tail -1 "$BATS_TEST_TMPDIR/plain")" = end ]
	KTASK_RUN_OPS=mmap,madvise,munmap,$mode shimmed timeout 300 \
		"$PROGRAMS/ahead-walk" "$1" $NR_STEPS ${2:+"$2"} \
		>"$BATS_TEST_TMPDIR/shimmed" || true
	cmp -s "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed" && return
	echo "KTASK_TEST_SEED=$1 differs, < plain, > with the shim:"
	diff "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed" | head -40
	return 1
}

# walks MODE [ARGUMENT]: four at least, among which a window must have been made
walks() {
	local mode=$1 seed nr until

	shift
	seed=${KTASK_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
	until=$((SECONDS + ${KTASK_TEST_SECONDS:-8}))
	for ((nr = 0; nr < 4 || SECONDS < until; nr++)); do
		walk $mode $((seed + nr)) "$@" || return
		[ -z "$KTASK_TEST_SEED" ] || break
	done
	echo "# walks: $nr, first seed: $seed" >&3
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	made_or_skip
}

@test "with small pages calls and contents are the same, and windows were made" {
	walks ahead-small
}

@test "with huge pages, too" {
	walks ahead unadvised
}

@test "with huge pages beside the program's own advice, but for what is moved" {
	walks ahead unmoved
}

# It unmaps a part of memory in which the shim took its advice back, and collapses what lies
# beside the hole.
@test "a collapse beside a hole" {
	for nr in 1 2 3; do
		walk ahead 238128983 unmoved
	done
}
