#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What the kernel refuses, and what is limited, reaches the program as it does
# without the shim, and leaves the same pages and the same contents.

load shim.bash

refused() {
	same_output timeout 100 "$PROGRAMS/refused-cases" "$@"
	grep -q 'status 0' "$BATS_TEST_TMPDIR/plain"
}

# Every seventh of 144 combinations, another seventh each time; KTASK_TEST_ALL=1
# takes all of them.
@test "each system call refused, with each error" {
	seed=${KTASK_TEST_SEED:-$RANDOM}
	step=${KTASK_TEST_ALL:-7}
	echo "# seed: $seed" >&3
	refused filters $((seed % step)) "$step"
}

@test "address space, data, locked memory, threads, descriptors, file size" {
	refused limits
	grep -q EAGAIN "$BATS_TEST_TMPDIR/plain"
	grep -q ENOMEM "$BATS_TEST_TMPDIR/plain"
	grep -q EFBIG "$BATS_TEST_TMPDIR/plain"
}

@test "a process that is killed for its memory is killed with it" {
	[ "$(id -u)" = 0 ] || skip "not root"
	# Version 1 of control groups, or 2.
	root=/sys/fs/cgroup/memory limit=memory.limit_in_bytes
	[ -d "$root" ] || root=/sys/fs/cgroup limit=memory.max
	group=$root/ktask-test-$$
	mkdir "$group" 2>/dev/null || skip "no control group can be made"
	echo $((64 << 20)) >"$group/$limit" ||
		{ rmdir "$group" && skip "control groups do not limit memory"; }
	[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
	for how in plain shimmed; do
		status=0
		(
			echo "$BASHPID" >"$group/cgroup.procs"
			$how timeout 60 "$PROGRAMS/refused-cases" allocate 256
		) >"$BATS_TEST_TMPDIR/$how" 2>&1 || status=$?
		sed -i '/ Killed /d' "$BATS_TEST_TMPDIR/$how"
		echo "status $status" >>"$BATS_TEST_TMPDIR/$how"
	done
	rmdir "$group"
	cat "$BATS_TEST_TMPDIR/shimmed"
	diff "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed"
	grep -q 'status 137' "$BATS_TEST_TMPDIR/plain"
}
