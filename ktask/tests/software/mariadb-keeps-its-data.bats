#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# MariaDB, whose buffer pool is private memory that it touches as a table is read, is
# filled, asked, stopped, killed and started again.  What it answers is the same when
# memory is made ahead of its touch, whatever size of page is asked for.

load software.bash

BUFFERS_MIB=192
ROWS=40000

# It does not run as root.
[ "$(id -u)" != 0 ] ||
	AS_USER=(--reuid=nobody "--regid=$(id -g nobody)" --clear-groups)

# The directories of the test may be closed to other users: everything that this
# one needs is here, the command and the shim included.
setup_file() {
	PATH=$PATH:/usr/sbin
	server=$(command -v mariadbd) || skip "no MariaDB: make servers"
	export MARIA=$server WORK=$(mktemp -d /tmp/ktask-my.XXXXXX)
	cp "$KTASK_BUILD/ktask" "$KTASK_BUILD/ktask-commands" \
		"$KTASK_BUILD/libktask-preload.so" "$WORK"
	[ "$(id -u)" != 0 ] || chown nobody "$WORK"
	export SHARE=/usr/share/mysql CLIENT=mariadb
	if [[ $MARIA == "$SERVERS"/* ]]; then
		cp -r "$SERVERS/usr" "$WORK"
		MARIA=$WORK${MARIA#"$SERVERS"}
		SHARE=$WORK/usr/share/mysql CLIENT=$WORK/usr/bin/mariadb
		export SERVER_ROOT=$WORK
	fi
	create_tables
}

teardown_file() {
	[ -z "${WORK:-}" ] || rm -rf "$WORK"
}

setup() {
	KTASK_BUILD=$WORK
	# Helpers work whatever else the machine does.
	export HOME=$WORK KTASK_OVERLOAD=ignore
	REPORT=$WORK/report
	rm -f "$REPORT"
}

as_user() {
	libraries_of "$@"
	setpriv "${AS_USER[@]}" -- env "${LIBRARIES[@]}" "$@"
}

# options_of DIRECTORY: what each start of the server has
options_of() {
	OPTIONS=(--no-defaults --datadir="$1" --lc-messages-dir="$SHARE"
		--character-sets-dir="$SHARE/charsets" --skip-grant-tables
		--tmpdir="$1" --innodb-flush-log-at-trx-commit=2 --innodb-use-native-aio=0)
}

create_tables() {
	as_user mkdir "$WORK/new" "$WORK/new/mysql"
	options_of "$WORK/new"
	{
		echo 'use mysql;'
		cat "$SHARE/mysql_system_tables.sql" \
			"$SHARE/mysql_system_tables_data.sql"
	} | as_user "$MARIA" "${OPTIONS[@]}" --bootstrap >"$WORK/new.log" 2>&1 || {
		tail "$WORK/new.log"
		false
	}
}

sql() {
	as_user "$CLIENT" --no-defaults -S "$WORK/s" -N -B -e "$1" 3>&-
}

begin() {
	options_of "$WORK/$HOW"
	serve "$MARIA" "${OPTIONS[@]}" --skip-networking --socket="$WORK/s" \
		--pid-file="$WORK/pid" --innodb-buffer-pool-size=${BUFFERS_MIB}M \
		"$@" >>"$WORK/$HOW.log" 2>&1
	await sql 'select 1' || {
		tail "$WORK/$HOW.log"
		false
	}
	server_has_its_shim
}

answers() {
	sql "select count(*), sum(crc32(text)), sum(id) from test.t;
		select md5(group_concat(text order by id separator ''))
			from test.t where id % 400 = 1;
		check table test.t"
}

database() {
	as_user cp -a "$WORK/new" "$WORK/$HOW"
	begin "$@"
	sql "create database test; use test;
		create table t (id int primary key, text varchar(4000))
			engine=innodb;
		insert into t select seq, repeat(md5(seq), 60)
			from seq_1_to_$ROWS"
	answers
	stop TERM
	begin "$@"
	answers
	sql "update test.t set text = reverse(text) where id % 3 = 0"
	answers
	# Bash says who was killed.
	stop KILL 2>/dev/null
	begin "$@"
	answers
	stop TERM
	rm -rf "${WORK:?}/$HOW"
}

@test "memory is made ahead, huge pages where they serve" {
	# Helpers work whatever else the machine does.
	export KTASK_OVERLOAD=ignore
	RUN_OPTIONS=(--ahead=on)
	same database
	[ "$(grep -c "^$ROWS" "$BATS_TEST_TMPDIR/plain")" = 4 ]
	made_ahead mariadbd
}

@test "memory is made ahead, in small pages" {
	export KTASK_OVERLOAD=ignore
	RUN_OPTIONS=(--ahead=small)
	same database
	[ "$(grep -c "^$ROWS" "$BATS_TEST_TMPDIR/plain")" = 4 ]
	made_ahead mariadbd
}
