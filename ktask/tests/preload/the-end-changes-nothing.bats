#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Giving memory back at the end of a process, in parallel: whoever still looks
# at that memory finds it whole, or nothing is taken; status, output and files
# are the same.

load shim.bash

# Named, so that a busy machine does not keep it from being tested.
export KTASK_RUN_OPS=mmap,madvise,mlock,munmap,fallocate,exit

# ends CASE [STATUS]: output, status and files are the same, and what the report says of
# the end is in $said.
ends() {
	for way in plain shimmed; do
		mkdir -p "$BATS_TEST_TMPDIR/$way"
		cd "$BATS_TEST_TMPDIR/$way"
		status=0
		printf 'one\ntwo\nthree\n' >input
		{ $way timeout -s KILL 300 "$PROGRAMS/exit-cases" "$1" || status=$?
			cat; } <input >output 2>&1
		echo "status: $status" >>output
		# It outlives its maker.
		for ((i = 0; i < 600; i++)); do
			[ -e exit-clone ] && [ ! -s exit-clone ] || break
			sleep 0.1
		done
	done
	cd "$BATS_TEST_TMPDIR"
	cat shimmed/output "$REPORT"
	diff -r plain shimmed
	grep -q "status: ${2:-3}" plain/output
	said=$(grep '^ktask: exit: ' "$REPORT") || true
}

# Where the library allows no second thread nothing is done at all: with one CPU,
# and without the right to lower helpers when all CPUs are busy.
was_taken() {
	[[ $said == *"exit: 1 call, "* || $said == *"no other CPU is idle"* ]]
	[[ $said == *"exit: 1 call, "* || $(id -u) != 0 || $(nproc) = 1 ]]
}

@test "handlers and destructors find their data, streams are written" {
	ends exit
	was_taken
	[ "$(cat plain/exit-file)" = "unflushed in a file" ]
	grep -q 'destructor: all there' plain/output
}

@test "allocated memory may go with the rest" {
	ends heap
	was_taken
}

@test "return from main, _exit, exit_group, quick_exit" {
	for one in main _exit exit_group quick; do
		: >"$REPORT"
		ends "$one"
		was_taken
	done
}

@test "locked memory is given back as well" {
	ends locked
	was_taken
}

@test "the last thread may be another one" {
	ends last-thread 0
}

@test "files keep what was written to them" {
	ends shared
	was_taken
}

@test "an input stream is left where the program was" {
	ends input
	grep -q two plain/output
}

@test "children of fork and vfork end alone" {
	ends fork
}

@test "while another thread runs nothing is taken" {
	ends thread
	[[ $said == *"because other threads run"* ||
		$said == *"no other CPU is idle"* ]]
	ends from-thread
}

@test "while a process shares the memory nothing is taken" {
	ends clone
	[ "$(cat plain/exit-clone)" = "all there" ]
	[[ $said == *"left to the kernel, because others may look"* ]]
}

@test "while a robust mutex is held nothing is taken" {
	ends robust
	grep -q 'owner died: 1' plain/output
	[[ $said == *"left to the kernel, because others may look"* ]]
}

@test "from a signal handler nothing is taken" {
	ends handler
	[[ $said == *"because a signal handler may have called"* ]]
}

@test "while somebody handles faults nothing is taken, and nobody waits" {
	[ -z "$(plain "$PROGRAMS/exit-cases" watched || true)" ] ||
		skip "no userfaultfd"
	ends watched
	nothing_taken
	[ -z "$(plain "$PROGRAMS/exit-cases" watched-by-device || true)" ] ||
		skip "no device for it"
	ends watched-by-device
	nothing_taken
}

@test "nor when that memory is unmapped" {
	[ -z "$(plain "$PROGRAMS/exit-cases" watched || true)" ] ||
		skip "no userfaultfd"
	ends unmaps-watched
	[ "$(taken munmap call)" = "" ]
}
