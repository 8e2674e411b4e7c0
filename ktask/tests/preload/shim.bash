# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Shared by the tests of the shim: where things are, and one program run twice,
# without and with the shim.  bats sources this; it has no tests of its own.

. "${BASH_SOURCE[0]%/*}/../../../tests/support/environment.bash"

KTASK_BUILD=${KTASK_BUILD:-$BATS_TEST_DIRNAME/../../../build}
SHIM=$KTASK_BUILD/libktask-preload.so
PROGRAMS=$KTASK_BUILD/tests/preload

# Small enough that the cases need little memory, above their smallest ranges.
export KTASK_RUN_MIN=1048576

plain() {
	env -u LD_PRELOAD "$@"
}

shimmed() {
	env LD_PRELOAD="$SHIM" KTASK_RUN_REPORT="$REPORT" "$@"
}

setup() {
	REPORT=$BATS_TEST_TMPDIR/report
	: >"$REPORT"
}

# The number in front of some words in the report's last line on a kind of
# call, or nothing: taken mlock call
taken() {
	grep "^ktask: $1: " "$REPORT" | tail -1 | grep -o "[0-9]* $2" |
		cut -d ' ' -f 1
}

# nothing_taken [WHY]: the report says so of each process, and why
nothing_taken() {
	cat "$REPORT"
	grep -q '^ktask: run: took over nothing.*'"$1" "$REPORT"
	# A watcher may have seen a mapping before it went.
	[ -z "$(grep -v -e '^ktask: run: \(took over nothing\|left \)' \
		-e '^ktask: ahead: .*, nothing made ahead' "$REPORT")" ]
}

# Both runs must print the same text, which must not be empty.
same_output() {
	plain "$@" >"$BATS_TEST_TMPDIR/plain"
	shimmed "$@" >"$BATS_TEST_TMPDIR/shimmed"
	[ -s "$BATS_TEST_TMPDIR/plain" ]
	diff -u "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed"
}

# remove_group DIRECTORY: a control group, once the watcher of a report has left
remove_group() {
	for _ in {1..600}; do
		! rmdir "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	rmdir "$1"
}

# new_group CONTROLLER: an empty control group, in $group, which that controller limits if the
# machine lets it; either version
new_group() {
	[ "$(id -u)" = 0 ] || skip "not root"
	group=/sys/fs/cgroup/$1
	[ -d "$group" ] || group=/sys/fs/cgroup
	group+=/ktask-test-$$
	mkdir "$group" 2>/dev/null || skip "no control group can be made"
}

# make_group MIB: a control group with so much memory, in $group
make_group() {
	local limit=memory.max

	new_group memory
	[ -e "$group/$limit" ] || limit=memory.limit_in_bytes
	echo $(($1 << 20)) >"$group/$limit" ||
		{ rmdir "$group" && skip "control groups do not limit memory"; }
	[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
}

# A control group that may limit threads, in $group
make_group_of_threads() {
	new_group pids
	[ -e "$group/pids.max" ] ||
		{ rmdir "$group" && skip "control groups do not limit threads"; }
}

# ---- memory that is made ahead ----

# As the last report says.
made() {
	grep -q '^ktask: ahead: .* [1-9][0-9.]* [KMG]iB made ahead' "$REPORT"
}

# Where nothing was made ahead for want of a CPU there is nothing to be seen.
made_or_skip() {
	made || ! grep -q '^ktask: ahead: .*no helper got a CPU' "$REPORT" ||
		skip "no helper got a CPU"
	made
}

# made_both_ways PROGRAM CASE...: says "ok", or what is $expected, with huge pages
# and without.  Helpers on a busy machine may get no CPU for longer than a test can wait.
# But the memory must be watched, if there is enough of it.
made_both_ways() {
	local program=$PROGRAMS/$1

	shift
	[ ! -e "$BATS_FILE_TMPDIR/busy" ] || skip "no helper got a CPU before"
	for mode in ahead-small ahead; do
		: >"$REPORT"
		KTASK_RUN_OPS=$mode run shimmed timeout 300 "$program" "$@"
		echo "$mode $*: $status $output"
		head -20 "$REPORT"
		[[ $output != "nothing was made ahead"* ]] || {
			grep -q -e '^ktask: ahead: ' -e 'memory is left' "$REPORT"
			: >"$BATS_FILE_TMPDIR/busy"
			skip "no helper got a CPU"
		}
		[ "$status" -eq 0 ]
		[ "$output" = "${expected:-ok}" ]
	done
}
