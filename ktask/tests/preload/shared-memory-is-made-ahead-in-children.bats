#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Children of fork() that touch memory in order which they share are helped, each in its own
# page table.  What is made in vain is within the bound for all of them together, and who
# ends or becomes another program at once gets no thread.

load shim.bash

unset KTASK_RUN_MIN
# Other tests run beside these.
export KTASK_OVERLOAD=ignore

setup() {
	REPORT=$BATS_TEST_TMPDIR/report
	: >"$REPORT"
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	if grep -qv '\[\(never\|deny\)\]' \
		/sys/kernel/mm/transparent_hugepage/shmem_enabled; then
		skip "shared memory has huge pages"
	fi
}

shares() {
	made_both_ways ahead-shared "$@"
}

# Some child has what its siblings may not have come to.
some_made() {
	grep -q '^ktask: ahead: .* [1-9][0-9.]* [KMG]iB made ahead' "$REPORT"
}

@test "a child that touches in order is helped" {
	shares helped
	some_made
}

@test "several at once, in order and at random, waste no more than one may" {
	shares several
}

@test "what a killed child leaves behind counts" {
	shares killed
}

@test "a hundred children waste no more than one may" {
	shares hundred
}

@test "a child that ends at once has one thread, and nothing is made" {
	shares nothing
}

@test "memory that one process gives back stays absent for all" {
	shares given-back
	some_made
}

@test "one process may unmap it, and map something else" {
	shares unmapped
	some_made
}

@test "nothing of it is left where the memory comes and goes" {
	shares comes-and-goes
}

@test "a child that may make no system call can allocate" {
	shares confined
}

@test "what children do not inherit is not watched in them" {
	shares not-inherited
}

@test "once one process handles its faults, nothing is made by any" {
	expected=$(plain timeout -s KILL 300 "$PROGRAMS/watch-cases" fault syscall)
	[ "$expected" != none ] || skip "no userfaultfd"
	expected= shares faults
}

@test "a child may change its namespaces, by system calls of its own as well" {
	shares namespaces
	some_made
}

@test "a child in which nothing moves has one thread, and is helped again" {
	shares rests
}

# Of an ordinary user, helpers of all processes together are no more than CPUs.
@test "also where ten ask at once" {
	local pids=() failed=

	for i in {1..10}; do
		KTASK_RUN_OPS=ahead shimmed timeout 300 \
			"$PROGRAMS/ahead-shared" rests \
			>"$BATS_TEST_TMPDIR/said.$i" 2>&1 &
		pids+=($!)
	done
	for i in {1..10}; do
		wait "${pids[i - 1]}" || failed="$failed $i"
		cat "$BATS_TEST_TMPDIR/said.$i"
	done
	! grep -q '^nothing was made ahead' "$BATS_TEST_TMPDIR"/said.* ||
		skip "no watcher got a CPU"
	[ -z "$failed" ]
}

@test "a child for which nothing will be made any more has one thread" {
	shares gives-up
}

# children_in MODE: how many a group allows, without the shim or with it
children_in() {
	(
		echo "$BASHPID" >"$group/cgroup.procs"
		[ "$1" != plain ] || exec env -u LD_PRELOAD timeout 300 \
			"$PROGRAMS/ahead-shared" to-the-limit
		export LD_PRELOAD="$SHIM" KTASK_RUN_REPORT="$REPORT"
		KTASK_RUN_OPS=$1 exec timeout 300 \
			"$PROGRAMS/ahead-shared" to-the-limit
	)
}

# What is left to the first hundred is less than the shim leaves to the program.
@test "a group of processes has as many children as without the shim" {
	make_group_of_threads
	echo $((350 + $(nproc))) >"$group/pids.max"
	expected=$(children_in plain 2>&1) || :
	for mode in ahead-small ahead; do
		got=$(children_in $mode 2>&1) || :
		echo "$mode: $got, and $expected without the shim"
		[ "$got" = "$expected" ] || break
	done
	remove_group "$group"
	[[ $expected =~ ^[1-9][0-9]*" children"$'\n'ok$ ]]
	[ "$got" = "$expected" ]
}

@test "switched off, nothing is made" {
	KTASK_RUN_OPS=ahead-off run shimmed timeout 300 \
		"$PROGRAMS/ahead-shared" nothing
	[ "$output" = ok ]
	KTASK_RUN_OPS=ahead-off run shimmed timeout 300 \
		"$PROGRAMS/ahead-shared" several
	[ "$output" = ok ]
	! some_made || false
}

@test "a child that execs is another program, and reports it" {
	KTASK_RUN_OPS=ahead run shimmed timeout 300 \
		"$PROGRAMS/ahead-shared" execs
	[ "$output" = ok ]
}
