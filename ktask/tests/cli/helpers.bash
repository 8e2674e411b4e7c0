# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For every .bats file here: where the command is, and what is checked often.
# The build directory comes in $KTASK_BUILD, default build/ of this tree.

bats_require_minimum_version 1.5.0

tree=$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)
# bats reads this several times, in processes that inherit from one another.
export KTEST_BUILD=${KTASK_BUILD:-${KTEST_BUILD:-$tree/build}}
build=$KTEST_BUILD
ktask=$build/ktask

. "${BASH_SOURCE[0]%/*}/../../../tests/support/environment.bash"
unset KTASK_BUILD
# What is learnt of operations neither: it begins with nothing.
export XDG_CACHE_HOME=$BATS_RUN_TMPDIR/cache

# need_mounts: skips where none can be made.  By the test itself: `run` makes a
# subshell, in which nothing can be skipped.
need_mounts() {
	unshare --mount true 2>/dev/null || skip "no mount namespaces"
}

# says STATUS TEXT COMMAND...: it ends so, with TEXT in the one line that it
# writes, on standard error, and nothing on standard output
says() {
	local status_wanted=$1 text=$2
	shift 2
	run "-$status_wanted" --separate-stderr "$@"
	echo "out '$output', err '$stderr'"
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ $stderr == "ktask: "* ]]
	[[ $stderr == *"$text"* ]]
}

# is_true EXPRESSION: about the JSON in $output
is_true() {
	jq -e "$1" <<<"$output" >/dev/null || {
		echo "not true: $1"
		echo "of: $output"
		return 1
	}
}
