#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Advice, limits, policies and locks that a program sets when some of its memory was made
# ahead do what they would do without that.

load shim.bash

unset KTASK_RUN_MIN
# Other tests run beside these.
export KTASK_OVERLOAD=ignore

told() {
	made_both_ways ahead-told-cases "$@"
}

# as_plain CASE...: says what it says without the shim
as_plain() {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	expected=$(plain timeout 300 "$PROGRAMS/ahead-told-cases" "$@")
	[ "${expected##*$'\n'}" = ok ]
	told "$@"
}

@test "advice on a part of a mapping holds for that part" {
	as_plain advises-part huge
	as_plain advises-part small
}

@test "advice that leaves out less than a huge page does not end what is made ahead" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	told advises-most
	made
}

@test "advice that is given while the watcher advises comes last" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	told advises-at-once
}

@test "pages are collapsed to huge ones, unless the program advised against these" {
	as_plain collapses
}

# watches NUMBER CASE: of so many mappings, as the report says, whether anything was made
watches() {
	local mode

	for mode in ahead-small ahead; do
		: >"$REPORT"
		KTASK_RUN_MIN=2097152 KTASK_RUN_OPS=$mode run shimmed \
			timeout 300 "$PROGRAMS/ahead-told-cases" many "$2"
		echo "$mode $2: $status $output"
		cat "$REPORT"
		[[ $output != *"the watcher got no CPU"* ]] ||
			skip "the watcher got no CPU"
		[[ $output == ok || $output == "nothing was made ahead"* ]]
		grep -q "^ktask: ahead: $1 mappings " "$REPORT"
	done
}

@test "of many mappings all are watched, and what is touched makes room for others" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	watches 101 "100 begun"
	watches 201 "200 whole"
}

@test "of too many mappings the report says so" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	KTASK_RUN_MIN=2097152 told many "150 idle"
	grep -q 'nothing is made ahead of more than 128 large mappings at once' "$REPORT"
}

@test "a limit on memory leaves all of it to the program" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	# RLIMIT_AS is 9, RLIMIT_DATA 2.
	for how in "setrlimit 9" "setrlimit64 2" "prlimit 2" "prlimit64 9" \
		"syscall 9"; do
		told limits "$how"
	done
}

@test "nothing is made while a thread has a memory policy" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	run plain "$PROGRAMS/ahead-told-cases" policy
	[[ $output != "no policies" ]] || skip "no memory policies"
	told policy
	grep -q 'nothing is made ahead with a memory policy' "$REPORT"
}

@test "nothing is made of memory that reserves none and grows" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	told grows-unreserved
}

@test "nothing is made where pages are locked when they are touched" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	run plain "$PROGRAMS/ahead-told-cases" locks mlock2
	[[ $output != "no locks" ]] || skip "so much may not be locked"
	for how in mlock2 syscall mlockall later; do
		told locks $how
	done
	grep -q 'nothing is made ahead where each page is locked' "$REPORT"
}
