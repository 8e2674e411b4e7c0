#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# --prefault leaves memory alone whose faults the program handles, also where it
# was mapped before that was known, and stops where a program maps without end
# and touches nothing.

load shim.bash

prefaulted() {
	timeout -s KILL 300 "$KTASK_BUILD/ktask" run --min 1M \
		--report="$REPORT" "$@"
}

handles_faults() {
	expected=$(plain timeout -s KILL 300 "$PROGRAMS/watch-cases" fault "$1")
	[ "$expected" != none ] || skip "no userfaultfd ($1)"
	[ "$expected" = "before 90 1 90
shared 90 90
trimmed 90 90
shrunk 90 90
holed 90 90 90
after 90 90" ]
	for how in --prefault=wait --prefault; do
		: >"$REPORT"
		run prefaulted $how -- "$PROGRAMS/watch-cases" fault "$1"
		echo "$how: $status $output"
		cat "$REPORT"
		[ "$status" -eq 0 ]
		[ "$output" = "$expected" ]
	done
	grep -q 'the program handles page faults itself (userfaultfd)' "$REPORT"
}

@test "a program that handles faults gets them, by the system call" {
	handles_faults syscall
}

@test "a program that handles faults gets them, by the device" {
	handles_faults device
}

@test "a program that handles faults gets them between hundreds of holes" {
	expected=$(plain timeout -s KILL 300 "$PROGRAMS/watch-cases" holes)
	[ "$expected" != none ] || skip "no userfaultfd"
	[ "$expected" = "0 without a fault" ]
	for how in --prefault=wait --prefault; do
		run prefaulted $how -- "$PROGRAMS/watch-cases" holes
		echo "$how: $status $output"
		[ "$status" -eq 0 ]
		[ "$output" = "$expected" ]
	done
}

@test "a program that asks what is present is told that all is" {
	run plain "$PROGRAMS/watch-cases" asks
	[ "${output% *}" = 0 ]
	run prefaulted --prefault=wait -- "$PROGRAMS/watch-cases" asks
	echo "$status $output"
	[ "$output" = "2048 2048" ]
	run "$KTASK_BUILD/ktask" run --help
	[[ $output == *mincore* ]]
}

in_group() {
	(
		echo "$BASHPID" >"$group/cgroup.procs"
		"$@"
	)
}

# Why no more is made; helpers without a CPU leave the second reason as well.
UNTOUCHED='what --prefault made before is untouched'
TOO_MUCH='more than --prefault may take of the available memory'

# endless MIB [--prefault...] COMMAND...: in a group of 256 MiB it never has more
endless() {
	local most=$1
	shift
	make_group 256
	: >"$REPORT"
	kib=$(in_group prefaulted "$1" -- "$PROGRAMS/watch-cases" endless \
		"${@:2}") || kib=
	remove_group "$group"
	cat "$REPORT"
	echo "$kib KiB"
	[ "$kib" -lt $((most << 10)) ]
	grep -q "$UNTOUCHED${or_else:+\|$or_else}" "$REPORT"
}

@test "mapping without end fills half of the memory at most" {
	endless 160 --prefault=wait untouched 16 64
	[ "$kib" -gt $((16 << 10)) ]
}

@test "many small mappings fill half of the memory at most" {
	endless 160 --prefault=wait untouched 1 512
	[ "$kib" -gt $((96 << 10)) ]
}

@test "mappings that lose a page fill half of the memory at most" {
	endless 160 --prefault=wait trimmed 2 256
	[ "$kib" -gt $((16 << 10)) ]
}

# Half of what 112 MiB that are touched leave, and those.
@test "many mappings that are touched hide none that are not" {
	endless 200 --prefault=wait half 1 224
	[ "$kib" -gt $((112 << 10)) ]
	[ "$(taken prefault call)" -gt 112 ]
}

# Whether helpers get a CPU or not: what they will make counts as well.
@test "memory that is made meanwhile is half of the memory at most" {
	or_else=$TOO_MUCH endless 160 --prefault waiting 16 12
	[ "$(taken prefault call)" -ge 1 ]
	[ "$(taken prefault call)" -le 9 ]
}

@test "mappings that are touched are made, one after another" {
	make_group 256
	kib=$(in_group prefaulted --prefault=wait -- "$PROGRAMS/watch-cases" \
		endless touched 16 12) || kib=
	remove_group "$group"
	cat "$REPORT"
	[ "$(taken prefault call)" -ge 10 ]
	! grep 'is untouched' "$REPORT" || false
}

# pair --prefault... FIRST SECOND: in a group of 256 MiB
pair() {
	make_group 256
	: >"$REPORT"
	pages=$(in_group prefaulted "$1" -- "$PROGRAMS/watch-cases" pair \
		"$2" "$3") || pages=
	remove_group "$group"
	cat "$REPORT"
	echo "pages: $pages"
}

@test "more than half of the memory is made only before mmap returns" {
	pair --prefault=wait 160 1
	[ "$pages" = $((160 * 256)) ]
	pair --prefault 160 1
	[ "$pages" = 0 ]
	[ "$(taken prefault call)" = 1 ]
	grep -q '160.0 MiB to the kernel: more than --prefault may take' "$REPORT"
}

@test "a mapping that was not made does not keep the next from being made" {
	pair --prefault 200 40
	[ "$pages" = 0 ]
	[ "$(taken prefault call)" = 1 ]
	! grep 'is untouched' "$REPORT" || false
}

# Whoever maps memory meanwhile waits for one such call, by a thread that may get no CPU.
@test "each call that makes memory holds the lock of mappings for little of it" {
	run timeout -s KILL 300 "$KTASK_BUILD/ktask" run --min 1M --prefault -- \
		"$PROGRAMS/pieces-cases"
	echo "$output"
	[ "$status" -eq 0 ]
	# Helpers of an ordinary user run on idle CPUs only.
	[ "$EUID" -eq 0 ] || [ "$output" != "0 MiB" ] || skip "no CPU idled"
	[[ $output =~ ^[1-9][0-9]*" MiB"$ ]]
}
