#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A program that writes its title over its arguments and its environment, as
# servers do: the settings of the shim stay those that the program began with.

load shim.bash

# titled CASE: its report is written where it was asked for, by the program's
# name, and no other file is made.
titled() {
	export KTASK_RUN_OPS=mmap
	mkdir "$BATS_TEST_TMPDIR/empty"
	cd "$BATS_TEST_TMPDIR/empty"
	run shimmed "$PROGRAMS/title-cases" "$1"
	echo "$status $output"
	cat "$REPORT"
	ls
	[ "$status" -eq 0 ]
	[ "$output" = "${2-ok}" ]
	[ -z "$(ls)" ]
	[ "$(taken mmap call)" = 1 ]
	grep -q '(title-cases, [0-9]*)$' "$REPORT"
	! grep -v '(title-cases, [0-9]*)$' "$REPORT" || false
}

@test "the report is written to its file, and to no file named by the title" {
	titled wiped
}

@test "a report on standard error stays one" {
	run env LD_PRELOAD="$SHIM" KTASK_RUN_OPS=mmap KTASK_RUN_REPORT=1 \
		"$PROGRAMS/title-cases" wiped
	echo "$output"
	[[ $output == *"ktask: mmap: 1 call, "*"(title-cases, "* ]]
}

@test "a limit of threads holds" {
	export KTASK_MAX_THREADS=1
	titled wiped
	grep -E '^ktask: mmap: .*, 1 thread: ' "$REPORT"
}

@test "jobs are counted where they were to be counted" {
	export KTASK_STAT=$BATS_TEST_TMPDIR/stat
	(umask 077 && echo "ktask-stat 1" >"$KTASK_STAT")
	titled wiped
	[ "$(grep -c '^populate ' "$KTASK_STAT")" = 1 ]
}

@test "a child of a program that moved its environment has the shim" {
	titled moved "ok
ok"
	[ "$(grep -c '^ktask: mmap: 1 call,' "$REPORT")" = 2 ]
}
