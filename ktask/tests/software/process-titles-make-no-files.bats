#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Servers write their process titles over their arguments and environment.  The
# report goes to its file all the same, under the program's name, and the
# directory in which the program runs gets no file that it does not get without the
# shim.

load software.bash

setup() {
	HOW=shimmed
	RUN_OPTIONS=(--prefault=wait)
	mkdir "$BATS_TEST_TMPDIR/directory"
	cd "$BATS_TEST_TMPDIR/directory"
}

# reported NAME PROCESSES: each line bears that name; at least so many processes
# have lines.
reported() {
	ls
	cat "$REPORT"
	[ -z "$(ls)" ]
	! grep -v "($1, [0-9]*)\$" "$REPORT" || false
	[ "$(grep -o "($1, [0-9]*)\$" "$REPORT" | sort -u | wc -l)" -ge "$2" ]
}

@test "stress-ng: a worker" {
	need stress-ng
	software stress-ng --vm 1 --vm-bytes 64M --vm-ops 20 --vm-populate \
		--timeout 60 --temp-path "$BATS_TEST_TMPDIR" >&2
	reported stress-ng 1
	[ "$(taken mmap call)" -ge 1 ]
}

@test "nginx: a master and a worker" {
	command -v nginx >/dev/null || skip 'no nginx: make servers'
	cat >../nginx.conf <<-EOF
		daemon off;
		pid $BATS_TEST_TMPDIR/nginx.pid;
		error_log $BATS_TEST_TMPDIR/nginx.log;
		worker_processes 1;
		events {}
		http {
			access_log off;
			client_body_temp_path $BATS_TEST_TMPDIR/1;
			proxy_temp_path $BATS_TEST_TMPDIR/2;
			fastcgi_temp_path $BATS_TEST_TMPDIR/3;
			uwsgi_temp_path $BATS_TEST_TMPDIR/4;
			scgi_temp_path $BATS_TEST_TMPDIR/5;
			proxy_cache_path $BATS_TEST_TMPDIR/6 keys_zone=big:64m;
			server {
				listen unix:$BATS_TEST_TMPDIR/s;
				return 200 "served\n";
			}
		}
	EOF
	# The worker is another user's, who must be able to write the report.
	chmod 755 "$BATS_TEST_TMPDIR"
	: >"$REPORT"
	chmod 666 "$REPORT"
	serve nginx -c "$BATS_TEST_TMPDIR/nginx.conf" 2>>../nginx.log
	await test -s ../nginx.pid
	server_has_its_shim
	run perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new("../s");
		print $s "GET / HTTP/1.0\n\n"; print <$s>'
	[ "${lines[-1]}" = served ]
	stop QUIT
	# The one is not enough: a worker has a title.
	reported nginx 2
	[ "$(taken prefault bytes)" -ge $((64 << 20)) ]
}

@test "redis: a server" {
	server=$(command -v redis-server redis-check-rdb | head -n 1)
	[ -n "$server" ] || skip "no redis-server: make deps NEED=software"
	ln -s "$server" ../redis-server
	serve ../redis-server --port 0 --unixsocket ../s --save '' \
		--enable-debug-command yes >>../redis.log 2>&1
	await redis-cli -s ../s PING
	redis-cli -s ../s DEBUG POPULATE 3 big $((80 << 20))
	redis-cli -s ../s FLUSHALL
	redis-cli -s ../s SHUTDOWN NOSAVE || :
	stop TERM
	reported redis-server 1
}
