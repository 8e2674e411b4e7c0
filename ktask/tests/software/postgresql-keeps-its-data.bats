#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# PostgreSQL with large shared buffers, small and huge pages, is filled, put
# under load, killed in the middle of it, and started again.  It runs as an
# ordinary user in a directory of its own and listens on a socket there.

load software.bash

BUFFERS_MIB=192

# The newest that is installed or unpacked; Debian keeps it out of the search path.
pg_directory() {
	local newest

	newest=$(find {,"$SERVERS"}/usr/lib/postgresql/*/bin -name pgbench \
		2>/dev/null |
		sort -V | tail -n 1)
	dirname "${newest:-$(command -v pgbench || echo /nonexistent/pgbench)}"
}

# It does not run as root.
[ "$(id -u)" != 0 ] ||
	AS_USER=(--reuid=nobody "--regid=$(id -g nobody)" --clear-groups)

as_user() {
	libraries_of "$@"
	setpriv "${AS_USER[@]}" -- env "${LIBRARIES[@]}" "$@"
}

# The directories of the test may be closed to other users: everything that this
# one needs is here, the command and the shim included.
setup_file() {
	export PG=$(pg_directory)
	[ -x "$PG/pgbench" ] || skip "no PostgreSQL: make servers"
	id -un >/dev/null || skip 'PostgreSQL wants a user that has a name'
	export WORK=$(mktemp -d /tmp/ktask-pg.XXXXXX)
	cp "$KTASK_BUILD/ktask" "$KTASK_BUILD/ktask-commands" \
		"$KTASK_BUILD/libktask-preload.so" "$WORK"
	[ "$(id -u)" != 0 ] || chown nobody "$WORK"
	if [[ $PG == "$SERVERS"/* ]]; then
		cp -r "$SERVERS/usr" "$WORK"
		PG=$WORK${PG#"$SERVERS"}
		export SERVER_ROOT=$WORK
	fi
	as_user "$PG/initdb" -D "$WORK/new" -U ktask -A trust -k -N \
		--locale=C -E UTF8 >/dev/null
	cat >>"$WORK/new/postgresql.conf" <<-EOF
		listen_addresses = ''
		unix_socket_directories = '$WORK'
		shared_buffers = ${BUFFERS_MIB}MB
		fsync = off
		jit = off
		max_connections = 20
	EOF
}

teardown_file() {
	[ -z "${WORK:-}" ] || rm -rf "$WORK"
}

setup() {
	export HOME=$WORK PGHOST=$WORK PGUSER=ktask PGDATABASE=postgres
	KTASK_BUILD=$WORK
	# Shared buffers are only touched, never asked for.
	RUN_OPTIONS=(--prefault=wait)
	REPORT=$WORK/report
	rm -f "$REPORT"
}

sql() {
	as_user "$PG/psql" -XAtq -c "$1"
}

bench() {
	as_user "$PG/pgbench" -n "$@"
}

# begin OPTION...: the server of this turn
begin() {
	serve "$PG/postgres" -D "$WORK/$HOW" "$@" >>"$WORK/$HOW.log" 2>&1
	await as_user "$PG/pg_isready" -q || {
		tail "$WORK/$HOW.log"
		false
	}
	server_has_its_shim
}

# What one client did, whose random numbers are always the same: to the bit.
contents() {
	for table in accounts branches tellers; do
		sql "select '$table', md5(string_agg(t::text, ' '
			order by t::text)) from pgbench_$table t"
	done
	sql "select 'history', md5(string_agg(concat(tid, bid, aid, delta), ' '
		order by tid, bid, aid, delta)) from pgbench_history"
}

# Whatever was committed when the server died: all sums are equal.
consistent() {
	sql "select 'consistent', a = b and b = c and c = d from
		(select sum(abalance) a from pgbench_accounts) w,
		(select sum(bbalance) b from pgbench_branches) x,
		(select sum(tbalance) c from pgbench_tellers) y,
		(select sum(delta) d from pgbench_history) z"
	sql "select 'transactions', count(*) > $1 from pgbench_history"
}

# more_than COUNT: so many transactions are committed, and one
more_than() {
	[ "$(sql "select count(*) > $1 from pgbench_history")" = t ]
}

# die_under_load COUNT: that many were committed before
die_under_load() {
	bench -c 4 -j 2 -T 100 >/dev/null 2>&1 &
	load=$!
	await more_than "$1"
	stop QUIT
	! wait "$load" || false
}

database() {
	as_user cp -a "$WORK/new" "$WORK/$HOW"
	begin "$@"
	sql "show huge_pages; show shared_buffers"
	bench -i -q -s 2 >/dev/null 2>&1
	bench -c 1 -t 500 --random-seed=1 >/dev/null 2>&1
	contents
	die_under_load 2000
	begin "$@"
	consistent 2000
	stop INT
	as_user "$PG/pg_checksums" -D "$WORK/$HOW" | grep -i bad
	# No file is named by the title of a process, and no line of the report.
	ls "$WORK/$HOW"
	[ "$HOW" = plain ] || ! grep -v '(postgres, [0-9]*)$' "$REPORT" || false
	rm -rf "${WORK:?}/$HOW"
}

@test "small pages" {
	same database -c huge_pages=off
	[ "$(taken prefault bytes)" -ge $((2 * BUFFERS_MIB << 20)) ]
	grep -q 'consistent|t' "$BATS_TEST_TMPDIR/plain"
}

@test "helpers make the buffers while it works" {
	RUN_OPTIONS=(--prefault)
	same database -c huge_pages=off
	grep -q 'consistent|t' "$BATS_TEST_TMPDIR/plain"
	[ "$(taken prefault call)" -ge 2 ]
}

@test "huge pages" {
	huge_pages $((BUFFERS_MIB / 2 + 32))
	same database -c huge_pages=on
	[ "$(taken prefault bytes)" -ge $((2 * BUFFERS_MIB << 20)) ]
	grep -q 'consistent|t' "$BATS_TEST_TMPDIR/plain"
}

# A session scans tables into buffers that nobody has touched.
scan_tables() {
	as_user cp -a "$WORK/new" "$WORK/$HOW"
	begin -c huge_pages=off
	# Larger ones would be read through a few buffers only.
	for part in 1 2 3; do
		sql "create table part$part as select n, repeat('y', 240) || n as text
			from generate_series(1, $((BUFFERS_MIB * 600))) n"
	done
	stop INT
	begin -c huge_pages=off
	sql "select pg_sleep(0.1);
		select count(*), sum(n), min(text) from part1;
		select count(*), sum(n), max(text) from part2;
		select count(*), sum(n), max(text) from part3"
	stop INT
	rm -rf "${WORK:?}/$HOW"
}

@test "buffers are made ahead of a session's scan" {
	if grep -qv '\[\(never\|deny\)\]' \
		/sys/kernel/mm/transparent_hugepage/shmem_enabled; then
		skip "shared memory has huge pages"
	fi
	# Helpers work whatever else the machine does.
	export KTASK_OVERLOAD=ignore
	RUN_OPTIONS=(--ahead=on)
	same scan_tables
	[ "$(grep -c '|' "$BATS_TEST_TMPDIR/plain")" = 3 ]
	made_ahead postgres
}

# A backend sorts in memory of its own, which it touches in order.
sort_in_memory() {
	as_user cp -a "$WORK/new" "$WORK/$HOW"
	begin -c huge_pages=off -c work_mem=512MB
	sql "select md5(string_agg(x, '' order by x)) from
		(select md5(i::text) x from generate_series(1, 600000) i) s"
	sql "select count(*), md5(string_agg(x, ',')) from
		(select distinct md5((i % 200000)::text) x
			from generate_series(1, 600000) i order by x) s"
	stop INT
	rm -rf "${WORK:?}/$HOW"
}

@test "memory of backends is made ahead" {
	# Helpers work whatever else the machine does.
	export KTASK_OVERLOAD=ignore
	for option in on small; do
		RUN_OPTIONS=("--ahead=$option")
		same sort_in_memory
		[ "$(grep -c '[0-9a-f]\{32\}' "$BATS_TEST_TMPDIR/plain")" = 2 ]
	done
	made_ahead postgres
}
