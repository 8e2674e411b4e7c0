#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# stress-ng fills memory with patterns and reads them back; the number of
# rounds is given, so both turns must do the same work and find no error.

load software.bash

# Exit status, failures, and how many rounds each stressor did.
stress() {
	local status=0 log=$BATS_TEST_TMPDIR/$HOW.log

	software stress-ng --verify --metrics-brief --no-rand-seed \
		--timeout 60 --temp-path "$BATS_TEST_TMPDIR" "$@" \
		>"$log" 2>&1 || status=$?
	sed 's/^stress-ng: *[a-z]*: *\[[0-9]*\] *//' "$log" | grep -v dispatching |
		awk '/bogo ops/ { table = 1; next }
		     table && $2 ~ /^[0-9]+$/ { print $1, $2 " rounds" }
		     /fail|error|WARN|corrupt/ { print }'
	echo "status $status"
}

stress_same() {
	need stress-ng
	account
	same stress "$@"
	grep -q rounds "$BATS_TEST_TMPDIR/plain"
	tail -n 1 "$BATS_TEST_TMPDIR/plain" | grep -qx 'status 0'
}

@test "every pattern, in memory that is populated" {
	stress_same --vm 1 --vm-bytes 64M --vm-method all --vm-ops 4000 \
		--vm-populate
	[ "$(jobs_of populate)" -ge 1 ]
}

@test "memory that is locked" {
	[ "$(id -u)" = 0 ] || skip "locking takes root"
	stress_same --vm 1 --vm-bytes 64M --vm-method flip --vm-ops 20 \
		--vm-locked
	[ "$(jobs_of lock)" -ge 1 ]
}

@test "two processes at once, mapping anew each round" {
	stress_same --vm 2 --vm-bytes 96M --vm-method galpat-0 --vm-ops 600 \
		--vm-populate --vm-madvise hugepage
}

@test "mapping, remapping, advice, locking and shared memory" {
	stress_same --mmap 1 --mmap-bytes 64M --mmap-ops 2 \
		--mremap 1 --mremap-bytes 64M --mremap-ops 5 \
		--madvise 1 --madvise-ops 5 --mlock 1 --mlock-ops 20 \
		--shm 1 --shm-bytes 16M --shm-ops 2 \
		--shm-sysv 1 --shm-sysv-bytes 16M --shm-sysv-ops 2 \
		--memfd 1 --memfd-bytes 64M --memfd-ops 1 \
		--fallocate 1 --fallocate-bytes 16M --fallocate-ops 5
}
