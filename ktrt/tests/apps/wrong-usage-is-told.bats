#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What cannot be done is told before anything is.

load helpers

# wrong TEXT COMMAND...: exit status 2, nothing on standard output
wrong() {
	local text=$1
	shift
	run -2 --separate-stderr "$@"
	echo "out '$output', err '$stderr'"
	[ -z "$output" ]
	[[ $stderr == *"$text"* ]]
}

@test "numbers that are none, or out of range" {
	for text in 0 -1 x 1x '' 99999999999999999999; do
		wrong "is not a number from" "$heat" --rows "$text"
		wrong "is not a number from" "$heat" --workers "$text"
		wrong "is not a number from" "$fwi" --steps "$text"
	done
	wrong "is not a number from 9 to" "$fwi" -x 8
}

@test "options and operands that there are not" {
	wrong "unrecognized option" "$heat" --no-such-option
	wrong "Too many arguments" "$heat" operand
	wrong "unrecognized option" "$fwi" --no-such-option
}

@test "what goes wrong, under a name of its own that is too long" {
	name=$(printf '%0600d' 0)
	run -1 --separate-stderr env PMI_SIZE=2 timeout 60 \
		bash -c "exec -a $name '$heat' --sequential"
	echo "err '$stderr'"
	[[ $stderr == 000*": joining the other ranks: "* ]]
}

@test "more ranks than rows or slices" {
	need_mpi
	run ranks 3 "$heat" --rows 2
	[ "$status" -eq 2 ]
	[[ $output == *"too many ranks"* ]]
	run ranks 3 "$fwi" -y 11
	[ "$status" -eq 2 ]
}

@test "ranks of another MPI than the program's" {
	for several in PMI_SIZE=2 PMIX_RANK=1; do
		for app in "$heat" "$fwi"; do
			run -1 --separate-stderr env "$several" \
				timeout 60 "$app" --sequential --json
			echo "out '$output', err '$stderr'"
			[ -z "$output" ]
			[ -n "$stderr" ]
		done
	done
}

@test "--help names every option and says what it is for" {
	for app in "$heat" "$fwi"; do
		run -0 "$app" --help
		for option in dir every workers buffered behind no-umt events \
			sequential verify json; do
			[[ $output == *"--$option"* ]]
		done
	done
}
