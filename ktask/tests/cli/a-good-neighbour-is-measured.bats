#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The benchmark of a good neighbour: its parts, the shape of its JSON, its exit
# status, and that it leaves nobody behind.  None of its times is judged.

load ../../../tests/support/environment.bash

BENCH=${KTASK_BUILD:-$BATS_TEST_DIRNAME/../../../build}/bench

neighbour() {
	run --separate-stderr timeout 600 "$BENCH/bench-neighbour" --size 2 \
		--window 10 --work 5 --rounds 1 "$@"
}

setup() {
	bats_require_minimum_version 1.5.0
}

@test "every side is measured beside both kinds of neighbours" {
	neighbour --only full --json
	[ "$status" -eq 0 ]
	jq -e '.benchmark == "neighbour" and .machine.cpus >= 1 and
		.rounds == 1 and .others_cpus >= 0' <<<"$output"
	# In a window so short a neighbour may get no CPU, and the other no speed.
	jq -e 'def measured: . == null or type == "number";
		.tables[0].rows | length == 8 and
		all(.[]; has("speed") and has("slower_pct") and
			(.speed | measured) and
			(.slower_pct | measured)) and
		([.[] | select(.job_ms > 0 and .job_ratio > 0)] | length) == 6
		' <<<"$output"
	[ "$(jq -c '[.tables[0].rows[].load] | unique' <<<"$output")" = \
		'["cpu","memory"]' ]
}

@test "half of the CPUs busy: beside, alone, and what is allowed" {
	neighbour --only half --json
	[ "$status" -eq 0 ]
	jq -e '.tables[0].rows | length == 2 and
		all(.[]; .ktask_ms > 0 and .alone_ms > 0 and .allowed_ms > 0
			and .of_allowed > 0 and .idle_cpus >= 1)' <<<"$output"
}

@test "every job is done with each fixed count and an adaptive one" {
	neighbour --only count --json
	[ "$status" -eq 0 ]
	jq -e '.tables[0].rows | length == 8 and
		all(.[]; .fixed_1_ms > 0 and .adaptive_ms > 0 and .best >= 1 and
			.of_best > 0)' <<<"$output"
	neighbour --only count --job populate --json
	[ "$(jq -c '[.tables[0].rows[].work]' <<<"$output")" = \
		'["populate-4k","populate-thp"]' ]
}

@test "neighbours come and go, with both priorities of helpers and none" {
	neighbour --only react --json
	[ "$status" -eq 0 ]
	jq -e '.tables[0].rows | length == 3 and
		all(.[]; has("neighbours") and .speed_ms >= 0)' <<<"$output"
}

@test "a permit is taken and returned" {
	neighbour --only permits --json
	[ "$status" -eq 0 ]
	jq -e '.tables[0].rows[0].median_us > 0' <<<"$output"
}

@test "the same goes into a file and a table" {
	neighbour --only permits --output "$BATS_TEST_TMPDIR/neighbour.json"
	[ "$status" -eq 0 ]
	[[ "$output" == *"permits: "*"median_us"* ]]
	[ "$(jq '.tables | length' "$BATS_TEST_TMPDIR/neighbour.json")" -eq 1 ]
}

# The name shows in /proc until whoever started a process has seen it end.
@test "no neighbour outlives a benchmark that is killed" {
	"$BENCH/bench-neighbour" --only full --rounds 1000 >/dev/null 2>&1 3>&- &
	bench=$!
	for ((i = 0; i < 600; i++)); do
		children=$(pgrep -P "$bench") && break
		sleep 0.05
	done
	[ -n "$children" ]
	kill -KILL "$bench"
	wait "$bench" || true
	for ((i = 0; i < 600; i++)); do
		alive=0
		for pid in $children; do
			state=$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null) ||
				continue
			[ "$state" = Z ] || alive=1
		done
		[ "$alive" = 0 ] && break
		sleep 0.05
	done
	[ "$alive" = 0 ]
}

@test "wrong use is told and exits 2" {
	for wrong in "--size 0" "--rounds x" "--only what" --unknown more; do
		neighbour $wrong
		[ "$status" -eq 2 ]
		[[ "$stderr" == "ktask: measuring a good neighbour: "* ]] ||
			[[ "$stderr" == *"unrecognized option"* ]]
	done
}

@test "a file that cannot be written is told and exits 1" {
	neighbour --only permits --output /nonexistent/neighbour.json
	[ "$status" -eq 1 ]
	[[ "$stderr" == "ktask: measuring a good neighbour: "* ]]
}
