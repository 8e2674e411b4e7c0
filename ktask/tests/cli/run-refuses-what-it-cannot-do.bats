#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask run` says before the command starts what it cannot do, and its help says
# for whom it does nothing.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
}

@test "an empty report is wrong usage" {
	says 2 "run: --report '': the name of a file is missing" \
		"$ktask" run --report= -- touch ran
	[ ! -e ran ]
}

@test "a report on standard output is wrong usage, not a file named -" {
	says 2 "run: --report=-: standard output is left to the command; './-' is a file of that name" \
		"$ktask" run --report=- -- touch ran
	[ ! -e - ] && [ ! -e ran ]
	run -0 "$ktask" run --report=./- -- true
	[ "$(wc -l <./-)" = 1 ]
}

@test "a report that cannot be written is told, and the command not run" {
	says 1 "ktask: opening the report $PWD/no/log: No such file or directory" \
		"$ktask" run --report=no/log -- touch ran
	says 1 "ktask: opening the report $PWD: Is a directory" \
		"$ktask" run "--report=$PWD" -- touch ran
	perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "socket")'
	says 1 "ktask: opening the report $PWD/socket: No such device" \
		"$ktask" run --report=socket -- touch ran
	[ ! -e ran ]
}

@test "a name that is too long is no report either" {
	says 1 "File name too long" "$ktask" run \
		"--report=$(printf 'x%.0s' {1..5000})" -- touch ran
	[ ! -e ran ]
}

@test "a report may be a pipe that nobody reads yet" {
	mkfifo pipe
	run -0 timeout 300 "$ktask" run --report=pipe -- echo ran
	[ "$output" = ran ]
}

@test "what is in the report's file stays" {
	echo before >log
	run -0 "$ktask" run --report=log -- true
	[ "$(head -n 1 log)" = before ]
}

# Servers become another user, who writes it.
@test "a report that is not there yet is made by who writes it" {
	run -0 "$ktask" run --report=log -- sh -c 'test ! -e log'
	[ -s log ]
}

# Another run may have begun to write it meanwhile.
@test "no file of the report's name is removed" {
	command -v strace >/dev/null || skip "no strace"
	strace -o trace true || skip "strace may not trace"
	run -0 strace -o trace -e trace=unlink,unlinkat \
		"$ktask" run --report="$PWD/log" -- true
	run -1 grep -F "\"$PWD/log\"" trace
}

# without_proc COMMAND...: /proc is an empty directory there.
without_proc() {
	unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$@"
}

@test "without /proc the library is found beside the command" {
	need_mounts
	run -0 without_proc "$ktask" run sh -c 'echo "$LD_PRELOAD"'
	[ "$output" = "$(readlink -f "$build")/libktask-preload.so" ]
	ln -s "$(readlink -f "$build")" link
	run -0 without_proc link/ktask run sh -c 'echo "$LD_PRELOAD"'
	[ "$output" = "$(readlink -f "$build")/libktask-preload.so" ]
}

@test "without /proc nothing is said to be missing that only cannot be looked for" {
	need_mounts
	ln -s "$(readlink -f "$ktask")" elsewhere
	run -0 ./elsewhere run true
	says 1 "starting ktask-commands: reading /proc/self/exe failed" \
		without_proc ./elsewhere run touch ran
	[[ $stderr != *"neither beside this program"* ]]
	[ ! -e ran ]
}

@test "--help has the default of --min, and who gains nothing" {
	run -0 "$ktask" run --help
	[[ $output == *"--min SIZE"*"32M by default"* ]]
	for word in "linked statically" "set-user-ID" "Go"; do
		[[ $output == *"$word"* ]]
	done
	[ "$(awk 'length > 80' <<<"$output")" = "" ]
}

@test "a report that nobody has written yet is not there: its program creates it" {
	run -0 "$ktask" run --report="$PWD/log" -- test ! -e log
	: >log
	run -0 "$ktask" run --report="$PWD/log" -- test -e log
}
