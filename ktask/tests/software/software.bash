# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Shared by the tests that start real programs: one function run twice, plain
# and through `ktask run`, and what both times came out compared.  Owns the
# servers that a test starts: none outlives it.  bats sources this; it has no
# tests of its own.

. "${BASH_SOURCE[0]%/*}/../../../tests/support/environment.bash"

KTASK_BUILD=${KTASK_BUILD:-$BATS_TEST_DIRNAME/../../../build}
REPORT=$BATS_TEST_TMPDIR/report
# The turn: plain or shimmed.
HOW=plain
# The server that runs, if one does, and as whom it does (setpriv options).
SERVER=
AS_USER=()
# Of `ktask run`, besides.
RUN_OPTIONS=()

# Servers that are not installed, only unpacked (ktask/tests/software/fetch).
SERVERS=$KTASK_BUILD/servers/root
# Where they are: a test may have copied them.
SERVER_ROOT=${SERVER_ROOT:-$SERVERS}
[ ! -d "$SERVERS/usr" ] || PATH=$PATH:$SERVERS/usr/sbin:$SERVERS/usr/bin

# libraries_of COMMAND...: LIBRARIES is what env(1) shall set for it, which is
# nothing unless a word of it is such a server.
libraries_of() {
	local word

	LIBRARIES=()
	for word in "$@"; do
		[[ $(command -v -- "$word") != "$SERVER_ROOT"/* ]] || LIBRARIES=(
			"LD_LIBRARY_PATH=$SERVER_ROOT/usr/lib/$(uname -m)-linux-gnu")
	done
}

need() {
	command -v "$1" >/dev/null || skip "no $1: make deps NEED=software"
}

# Becomes the program, as the turn has it; calls of 1 MiB are taken already, so
# that little memory is enough.
become() {
	libraries_of "$@"
	[ "$HOW" = plain ] || set -- "$KTASK_BUILD/ktask" run --min 1M \
		--report="$REPORT" "${RUN_OPTIONS[@]}" -- "$@"
	exec env -u LD_PRELOAD "${LIBRARIES[@]}" "$@"
}

software() {
	(become "$@")
}

# same FUNCTION [ARGUMENT...]: both turns must print the same text, and some.
same() {
	for HOW in plain shimmed; do
		"$@" >"$BATS_TEST_TMPDIR/$HOW" 2>&1
	done
	[ -s "$BATS_TEST_TMPDIR/plain" ]
	diff -u "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed"
}

# The sum over all processes of the number in front of some words in the
# report's lines on a kind of call: taken mlock call
taken() {
	sed -n "s/^ktask: $1: .*\b\([0-9][0-9]*\) $2.*/\1/p" "$REPORT" |
		awk '{ sum += $1 } END { print sum + 0 }'
}

# From here on the library counts its jobs, those of forked children as well.
account() {
	export KTASK_STAT=$BATS_TEST_TMPDIR/stat
	(umask 077 && echo "ktask-stat 1" >"$KTASK_STAT")
}

jobs_of() {
	grep -c "^$1 " "$KTASK_STAT"
}

# serve COMMAND...: in the background; ended with this shell, however that ends.
serve() {
	become setpriv "${AS_USER[@]}" --pdeathsig KILL "$@" 3>&- &
	SERVER=$!
}

# The shim is in the server when it is the server's turn, and only then.
server_has_its_shim() {
	local has=shimmed

	grep -q libktask-preload "/proc/$SERVER/maps" || has=plain
	[ "$has" = "$HOW" ]
}

server_lives() {
	[ -n "$SERVER" ] && kill -0 "$SERVER" 2>/dev/null
}

# await COMMAND...: until it succeeds, two minutes at most
await() {
	for ((i = 0; i < 1200; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	echo "waited in vain for: $*"
	return 1
}

# stop SIGNAL: the server's status is not asked; it has two minutes to go.  It may
# go by itself at any moment.
stop() {
	server_lives || return 0
	kill "-$1" "$SERVER" || :
	for ((i = 0; i < 1200; i++)); do
		server_lives || break
		sleep 0.1
	done
	! server_lives || kill -KILL "$SERVER" || :
	wait "$SERVER" || :
	SERVER=
}

# huge_pages COUNT: so many of 2 MiB are free; given back by teardown.
huge_pages() {
	local pool=/sys/kernel/mm/hugepages/hugepages-2048kB

	[ -w "$pool/nr_hugepages" ] || skip "cannot make huge pages"
	OLD_HUGE_PAGES=$(cat "$pool/nr_hugepages")
	echo $((OLD_HUGE_PAGES + $1)) 2>/dev/null >"$pool/nr_hugepages" ||
		skip "cannot make huge pages"
	[ "$(cat "$pool/free_hugepages")" -ge "$1" ] ||
		skip "too few huge pages"
}

teardown() {
	stop KILL
	[ -z "$OLD_HUGE_PAGES" ] || echo "$OLD_HUGE_PAGES" \
		>/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
	[ -n "$BATS_TEST_COMPLETED" ] ||
		tail -n 40 "$BATS_TEST_TMPDIR/plain" \
			"$BATS_TEST_TMPDIR/shimmed" "$REPORT"
}

# made_ahead NAME: memory of a process of that name was made ahead of its touch.  That
# somebody watched it, or could not, is not enough.
made_ahead() {
	cat "$REPORT"
	! grep -q "^ktask: ahead: .* [1-9][0-9.]* [KMG]iB made ahead .*($1" "$REPORT" ||
		return 0
	! grep -q 'no helper got a CPU' "$REPORT" || skip "no helper got a CPU"
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	false
}
