#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# hugetlb pages with and without the shim: files that are allocated and mapped,
# a pool that is too small, and one that becomes empty on the way.

load shim.bash
load random.bash

POOL=/sys/kernel/mm/hugepages/hugepages-2048kB

# pool N: N pages are free, besides those that are in use.
pool() {
	local used=$(($(cat "$POOL/nr_hugepages") - $(cat "$POOL/free_hugepages")))

	echo $((used + $1)) >"$POOL/nr_hugepages" &&
		[ "$(cat "$POOL/free_hugepages")" = "$1" ]
}

setup_file() {
	[ "$(id -u)" = 0 ] && [ -w "$POOL/nr_hugepages" ] || return 0
	cat "$POOL/nr_hugepages" >"$BATS_FILE_TMPDIR/former"
	! pool 40 || : >"$BATS_FILE_TMPDIR/ready"
}

setup() {
	REPORT=$BATS_TEST_TMPDIR/report
	: >"$REPORT"
	[ -e "$BATS_FILE_TMPDIR/ready" ] || skip "no pool can be had"
}

teardown_file() {
	[ ! -e "$BATS_FILE_TMPDIR/former" ] ||
		cat "$BATS_FILE_TMPDIR/former" >"$POOL/nr_hugepages"
}

@test "allocated and mapped: the same" {
	same_output "$PROGRAMS/huge-cases"
	[ "$(taken fallocate call)" -ge 4 ]
	[ "$(taken mmap call)" -ge 3 ]
}

@test "a pool that others have used up: the same" {
	pool 5
	same_output "$PROGRAMS/huge-cases"
	grep -q ENOSPC "$BATS_TEST_TMPDIR/plain"
	grep -q ENOMEM "$BATS_TEST_TMPDIR/plain"
	pool 0
	same_output "$PROGRAMS/huge-cases"
	pool 40
}

@test "random sequences: the same" {
	sequences 15 account huge
	took mmap fallocate
}

@test "random sequences with --prefault: the same" {
	export KTASK_RUN_OPS=prefault
	sequences 5 contents huge
}
