#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The benchmark against the peers: who takes part, the shape of its JSON, its
# exit status.  None of its times is judged; an idle pool's memory is.

load ../../../tests/support/environment.bash

BENCH=${KTASK_BUILD:-$BATS_TEST_DIRNAME/../../../build}/bench

peers() {
	run --separate-stderr "$BENCH/bench-peers" --idle "$BENCH/idle-pool" \
		--size 16 --rounds 2 "$@"
}

setup() {
	bats_require_minimum_version 1.5.0
}

@test "every peer takes part in a case" {
	peers --only populate-thp --json
	[ "$status" -eq 0 ]
	[ "$(jq -c '[.rows[].peer]' <<<"$output")" = '["plain loop","libktask","libktask","static split","OpenMP dynamic","oneTBB parallel_for"]' ]
	jq -e '.benchmark == "peers" and .size_bytes == 16777216' <<<"$output"
	jq -e '.machine.cpus >= 1 and (.machine.kernel | length > 0)' <<<"$output"
}

@test "rows have the shape that ktask bench gives its own" {
	peers --only populate-4k --json
	jq -e 'all(.rows[]; .case == "populate-4k" and .threads >= 1 and
		.seconds.median > 0 and .seconds.mean > 0 and
		.seconds.stddev_pct >= 0 and .speedup > 0 and
		.gb_per_s > 0 and .cpu_seconds > 0)' <<<"$output"
	jq -e '.rows[0].speedup == 1' <<<"$output"
}

@test "the same goes into a file and a table" {
	peers --only populate-thp --output "$BATS_TEST_TMPDIR/peers.json"
	[ "$status" -eq 0 ]
	[[ "$output" == *"libktask with "*" of the speed of "* ]]
	[ "$(jq '.rows | length' "$BATS_TEST_TMPDIR/peers.json")" -eq 6 ]
}

@test "an idle pool of 16 helpers keeps less than 1 MiB, stacks aside" {
	peers --only idle --json
	[ "$status" -eq 0 ]
	jq -e '.figures | map({(.name): .value}) | add |
		.idle_pool_helpers == 16 and .idle_pool_kib > 0 and
		.idle_pool_kib < 1024' <<<"$output"
}

@test "wrong use is told and exits 2" {
	for wrong in "--size 0" "--rounds x" "--threads -1" --unknown more; do
		peers $wrong
		[ "$status" -eq 2 ]
		[[ "$stderr" == "ktask: comparing peers: "* ]] ||
			[[ "$stderr" == *"unrecognized option"* ]]
	done
}

@test "a file that cannot be written is told and exits 1" {
	peers --only idle --output /nonexistent/peers.json
	[ "$status" -eq 1 ]
	[[ "$stderr" == "ktask: comparing peers: "* ]]
}
