# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For every .bats file here: where the command is, and what is checked often.

bats_require_minimum_version 1.5.0

tree=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
# bats reads this several times, in processes that inherit from one another.
export KTEST_BUILD=${KTASK_BUILD:-${KTEST_BUILD:-$tree/build}}
umt=$KTEST_BUILD/umt
. "${BASH_SOURCE[0]%/*}/../../tests/support/environment.bash"
unset KTASK_BUILD

# says STATUS TEXT COMMAND...: it ends so, with TEXT in the one line that it
# writes, on standard error, and nothing on standard output
says() {
	local status_wanted=$1 text=$2
	shift 2
	run "-$status_wanted" --separate-stderr "$@"
	echo "out '$output', err '$stderr'"
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ $stderr == "umt: "* ]]
	[[ $stderr == *"$text"* ]]
}

# is_true EXPRESSION [FILE]: about that JSON, or the one in $output
is_true() {
	local text=$output
	[ -z "${2:-}" ] || text=$(<"$2")
	jq -e "$1" <<<"$text" >/dev/null || {
		echo "not true: $1"
		return 1
	}
}

# A program can be watched only where eBPF may be loaded.
need_bpf() {
	local why
	why=$("$umt" info --json | jq -r .bpf.why)
	[ -z "$why" ] || skip "no eBPF here: $why"
}

# becomes COMMAND...: it succeeds within half a minute
becomes() {
	for _ in {1..600}; do
		"$@" && return
		sleep 0.05
	done
	echo "never so: $*"
	return 1
}
