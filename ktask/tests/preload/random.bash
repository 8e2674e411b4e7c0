# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Random sequences of calls, run twice and compared.  bats sources this.

NR_CALLS=${NR_CALLS:-30}

# sequence SEED [ARGUMENT...]
sequence() {
	local seed=$1
	shift
	plain "$PROGRAMS/random-cases" "$seed" $NR_CALLS "$@" \
		>"$BATS_TEST_TMPDIR/plain"
	shimmed "$PROGRAMS/random-cases" "$seed" $NR_CALLS "$@" \
		>"$BATS_TEST_TMPDIR/shimmed"
	[ "$(grep -c '^[a-z].*rc=' "$BATS_TEST_TMPDIR/plain")" -gt 5 ] ||
		return 1
	cmp -s "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed" &&
		return
	echo "KTASK_TEST_SEED=$seed differs, < plain, > with the shim:"
	diff "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed" | head -40
	return 1
}

# sequences DEFAULT_SECONDS [ARGUMENT...]: one after another, three at least
sequences() {
	local seconds=${KTASK_TEST_SECONDS:-$1} nr
	local seed=${KTASK_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
	local until=$((SECONDS + seconds))

	shift
	for ((nr = 0; nr < 3 || SECONDS < until; nr++)); do
		sequence $((seed + nr)) "$@" || return
		[ -z "$KTASK_TEST_SEED" ] || break
	done
	nr_done=$nr
	echo "# sequences: $nr, first seed: $seed" >&3
}

# took CALL...: where enough was tried, each was taken; half of the sequences
# have no right to write the report.
took() {
	[ "$nr_done" -ge 10 ] || return 0
	for one in "$@"; do
		grep -q "^ktask: $one: " "$REPORT"
	done
}
