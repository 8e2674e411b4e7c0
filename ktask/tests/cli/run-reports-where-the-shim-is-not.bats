#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A program into which no library can be preloaded: `ktask run --report` writes
# the line that the shim cannot write.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	echo 'int main(void) { return 7; }' >program.c
}

# nothing WHY COMMAND...: the report is one line, with WHY and the command's name
nothing() {
	local why=$1
	shift
	rm -f log
	run -7 "$ktask" run --report=log -- "$@"
	cat log
	[ "$(wc -l <log)" = 1 ]
	grep -qE "^ktask: run: nothing can be taken over: .*$why.* \\($(basename "$1"), [0-9]+\\)\$" log
	run -7 --separate-stderr "$ktask" run --report -- "$@"
	[[ $stderr == "ktask: run: nothing can be taken over: "*"$why"* ]]
	run -7 --separate-stderr "$ktask" run -- "$@"
	[ -z "$stderr" ]
}

@test "a program that is linked statically" {
	cc -static -o static program.c || skip "no static C library"
	nothing "linked statically" ./static
	PATH=$PWD:$PATH nothing "linked statically" static
	printf '#! %s\n' "$PWD/static" >script
	chmod +x script
	nothing "linked statically" ./script
}

@test "a static program that may lie anywhere" {
	cc -static-pie -fPIE -o static program.c || skip "no static C library"
	nothing "linked statically" ./static
}

@test "a report that nobody reads ends no program" {
	cc -static -o static program.c || skip "no static C library"
	run -7 env --default-signal=PIPE perl -e 'pipe R, W; close R;
		open STDERR, ">&", W; exec @ARGV' "$ktask" run --report -- ./static
}

@test "a program that gains rights" {
	[ "$(id -u)" = 0 ] || skip "not root"
	cc -o setuid program.c
	chown nobody setuid
	chmod 4755 setuid
	! findmnt -no OPTIONS --target . | grep -q nosuid ||
		skip "a file system without set-user-ID"
	nothing "set-user-ID" ./setuid
}

@test "behind a filter that does not let the library work" {
	filter=$build/tests/preload/guard-cases
	[ -x "$filter" ] || skip "not built"
	number=$(printf '#include <sys/syscall.h>\nSYS_madvise\n' |
		cc -E -P - | tail -n 1)
	run -0 "$filter" filter-before "$number" "$ktask" run --report=log \
		/bin/echo ran
	cat log
	[ "$output" = ran ]
	[ "$(wc -l <log)" = 1 ]
	grep -q 'nothing can be taken over: .*system call filter.* (echo, ' log
}

@test "where the shim is there, the command writes no line" {
	cc -o program program.c
	run -7 "$ktask" run --report=log -- ./program
	! grep 'nothing can be taken over' log || false
}

@test "another ktask run is no static program" {
	cc -o program program.c
	run -7 "$ktask" run --report=log -- "$ktask" run -- ./program
	cat log
	! grep 'nothing can be taken over' log || false
	grep -q '(program, ' log
}
