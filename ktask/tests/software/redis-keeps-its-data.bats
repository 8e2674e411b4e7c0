#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Redis with a big data set writes its snapshot, for which it forks, while the
# data is being changed; what it then reads back is what it had at the fork.
# Large values matter: the child gives those back as soon as they are written,
# and so works with the library in a forked process.

load software.bash

# Debian's package of the server starts one; the tools have the same program
# under another name.
redis_server() {
	command -v redis-server || {
		checker=$(command -v redis-check-rdb) &&
			ln -sf "$checker" "$BATS_TEST_TMPDIR/redis-server" &&
			echo "$BATS_TEST_TMPDIR/redis-server"
	}
}

# The name of a socket must be short: relative ones always are.
cli() {
	redis-cli --no-raw -s "$HOW.sock" "$@"
}

begin() {
	serve "$(redis_server)" --port 0 --unixsocket "$HOW.sock" \
		--dbfilename "$HOW.rdb" --save '' --appendonly no \
		--enable-debug-command yes --daemonize no >>"$HOW.log" 2>&1
	await cli PING
	await ready
	server_has_its_shim
}

ready() {
	! cli PING | grep -q LOADING || false
}

saved() {
	cli INFO persistence | grep -q '^rdb_bgsave_in_progress:0'
}

digest() {
	cli DEBUG DIGEST
	cli DBSIZE
}

change_everything() {
	for ((i = 0; i < 1000; i++)); do
		echo "SETRANGE big:$((i % 3)) $((i * 65536)) changed-$i"
		echo "APPEND small:$i changed"
	done | cli >/dev/null
}

snapshot() {
	begin
	cli DEBUG POPULATE 3 big $((80 << 20))
	cli DEBUG POPULATE 100000 small 100
	digest
	cli BGSAVE
	change_everything
	await saved
	cli INFO persistence | grep -o '^rdb_last_bgsave_status:[a-z]*'
	echo "changed: $(digest)"
	cli SHUTDOWN NOSAVE
	stop TERM
	begin
	echo "read back: $(digest)"
	cli FLUSHALL
	digest
	stop TERM
}

@test "a snapshot taken while the data changes is read back whole" {
	need redis-cli
	redis_server >/dev/null || skip "no redis-server"
	account
	cd "$BATS_TEST_TMPDIR"
	same snapshot
	[ "$(grep -c '^read back' "$BATS_TEST_TMPDIR/plain")" = 1 ]
	first=$(grep -m1 -o '[0-9a-f]\{40\}' "$BATS_TEST_TMPDIR/plain")
	grep -q "^read back: $first" "$BATS_TEST_TMPDIR/plain"
	! grep -q "^changed: $first" "$BATS_TEST_TMPDIR/plain" || false
	# The child gave large values back.
	[ "$(jobs_of discard)" -ge 2 ]
}
