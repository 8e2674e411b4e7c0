#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What the kernel refuses, and what is limited, reaches the program as it does
# without the shim, and leaves the same pages and the same contents.

load shim.bash

refused() {
	same_output timeout 300 "$PROGRAMS/refused-cases" "$@"
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

# in_group COMMAND...: its output and status
in_group() {
	local status=0

	(
		echo "$BASHPID" >"$group/cgroup.procs"
		"$@"
	) 2>&1 | sed '/ Killed /d'
	status=${PIPESTATUS[0]}
	echo "status $status"
}

@test "a process that is killed for its memory is killed with it" {
	make_group 64
	for how in plain shimmed; do
		in_group $how timeout 300 "$PROGRAMS/refused-cases" \
			allocate 256 >"$BATS_TEST_TMPDIR/$how"
	done
	remove_group "$group"
	cat "$BATS_TEST_TMPDIR/shimmed"
	diff "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed"
	grep -q 'status 137' "$BATS_TEST_TMPDIR/plain"
}

@test "--prefault takes no more than the control group has" {
	make_group 64
	for how in --prefault --prefault=wait; do
		in_group "$KTASK_BUILD/ktask" run --report="$REPORT" $how -- \
			python3 -c '
import mmap, time
memory = mmap.mmap(-1, 256 << 20)
memory[4711] = 1
time.sleep(0.2)
print("lives")' >"$BATS_TEST_TMPDIR/said"
		cat "$BATS_TEST_TMPDIR/said"
		grep -q lives "$BATS_TEST_TMPDIR/said"
	done
	remove_group "$group"
	# Nothing is told of it where helpers got no CPU in that time.
	made=$(taken prefault bytes)
	[ "${made:-0}" -lt $((64 << 20)) ]
}
