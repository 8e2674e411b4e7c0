#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# ktrt-info: the CPUs and the backend that a runtime would use.

load ../../../tests/support/environment.bash

bats_require_minimum_version 1.5.0

setup() {
	tree=$BATS_TEST_DIRNAME/../../..
	build=${KTASK_BUILD:-$tree/build}
}

@test "the CPUs are those that the process may use" {
	cpus=$(nproc)
	run "$build/ktrt-info"
	[ "$status" -eq 0 ]
	[[ $output == *"monitored "* ]]
	first=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
	run taskset -c "$first" "$build/ktrt-info"
	[ "$status" -eq 0 ]
	[[ $output == *"workers   1"* ]]
	[[ $output == *"cpus      $first"* ]]
}

@test "JSON is JSON, and says the same" {
	command -v jq >/dev/null || skip "no jq"
	run "$build/ktrt-info" --json
	[ "$status" -eq 0 ]
	[ "$(jq '.workers == (.cpus | length)' <<<"$output")" = true ]
}

@test "stalls are told, and there are none without a task" {
	run "$build/ktrt-info"
	[ "$status" -eq 0 ]
	[[ $output == *"stalls    0"* ]]
	command -v jq >/dev/null || skip "no jq"
	run "$build/ktrt-info" --json
	[ "$(jq '.stalls' <<<"$output")" = 0 ]
}

@test "the environment narrows it" {
	KTRT_WORKERS=1 KTRT_UMT=0 run "$build/ktrt-info"
	[[ $output == *"workers   1"* ]]
	[[ $output == *"monitored none"* ]]
}

@test "what is no number in the environment is told" {
	for text in 1x x -1 ' 1' 1.0; do
		KTRT_WORKERS=$text run --separate-stderr "$build/ktrt-info"
		echo "out '$output', err '$stderr'"
		[ "$status" -eq 2 ]
		[ -z "$output" ]
		[[ $stderr == "ktrt-info: KTRT_WORKERS: '$text' is not a number" ]]
	done
}

@test "wrong usage ends with 2, help and version with 0" {
	run "$build/ktrt-info" --nonsense
	[ "$status" -eq 2 ]
	run "$build/ktrt-info" --json more
	[ "$status" -eq 2 ]
	run "$build/ktrt-info" --version
	[ "$status" -eq 0 ]
	run "$build/ktrt-info" --help
	[ "$status" -eq 0 ]
	source "$tree/ktrt/packaging/ktrt-info.bash-completion"
	for option in $(grep -o -- '--[a-z]*' <<<"$output" | sort -u); do
		COMP_WORDS=(ktrt-info "$option")
		COMP_CWORD=1
		_ktrt_info
		[ "${COMPREPLY[0]}" = "$option" ]
		grep -q "Fl ${option/--/-}" "$tree/ktrt/man/ktrt-info.1"
	done
}
