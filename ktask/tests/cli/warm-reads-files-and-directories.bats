#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# ktask warm: files and directories, what is told of them, and that only what was
# named is read.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p from/deep/er
	seq 300000 >from/large
	seq 7 >from/small
	: >from/empty
	for i in 1 2 3 4 5 6 7 8 9; do
		seq "$i" >"from/deep/$i"
	done
	cp from/large from/deep/er/large
	ln -s small from/link
	truncate -s 8M from/sparse
}

teardown() {
	[ -z "${huge:-}" ] || rm -r "$huge"
}

@test "files are warmed, and counted" {
	run -0 --separate-stderr "$ktask" warm from/large from/small
	[ -z "$stderr" ]
	[[ $output =~ ^2\ files:\ .*\ in\ [0-9.]+\ s,\ [0-9.]+\ GB/s,\ [0-9]+\ threads?,\ [0-9.]+\ s\ of\ CPU$ ]]
	run -0 "$ktask" warm --recursive --threads 1 from
	[[ $output == "14 files: "*", 1 thread, "* ]]
	run -0 "$ktask" warm --direct --recursive from
	[[ $output == "14 files: "* ]]
}

@test "figures as JSON" {
	run -0 "$ktask" warm --json from/small
	is_true '.files == 1 and .bytes == 14 and .errors == []'
	run -1 --separate-stderr "$ktask" warm --json from/small from/nosuch
	is_true '.files == 1'
}

@test "whatever was complained about is in the JSON" {
	mkfifo pipe
	run -1 --separate-stderr "$ktask" warm --json from/nosuch from pipe \
		from/small
	[ "${#stderr_lines[@]}" -eq 3 ]
	is_true '.files == 1 and .errors == [
		{ path: "from/nosuch", offset: 0,
		  error: "No such file or directory" },
		{ path: "from", offset: 0,
		  error: "is a directory (--recursive goes through it)" },
		{ path: "pipe", offset: 0, error: "not a regular file" }]'
	# Nothing at all could be warmed.
	run -1 --separate-stderr "$ktask" warm --json from/nosuch
	is_true '.files == 0 and (.errors | length) == 1'
}

@test "a directory that cannot be gone through is in the JSON" {
	mkdir from/deep/closed
	chmod 0 from/deep/closed
	local as_somebody=()
	if [ "$EUID" -eq 0 ]; then
		command -v setpriv >/dev/null || skip "no setpriv"
		as_somebody=(setpriv --bounding-set -all --inh-caps -all
			--ambient-caps -all --reuid 0 --clear-groups)
	fi
	run -1 --separate-stderr "${as_somebody[@]}" \
		"$ktask" warm --json --recursive from
	[[ $stderr == *"accessing 'from/deep/closed': Permission denied"* ]]
	is_true '.errors == [{ path: "from/deep/closed", offset: 0,
		error: "Permission denied" }]'
	# A file that the walk found and the job could not open.
	rmdir from/deep/closed
	chmod 0 from/small
	run -1 --separate-stderr "${as_somebody[@]}" \
		"$ktask" warm --json --recursive from
	is_true '.errors == [{ path: "from/small", offset: 0,
		error: "Permission denied" }]'
}

@test "a name that is no text is in the JSON as well" {
	printf x >from/$'a\xff'
	# Standard input to error, and one for what the names go to.
	run -1 --separate-stderr bash -c 'ulimit -n 4; exec 3>&-; exec "$@"' - \
		"$ktask" warm --json from/$'a\xff'
	is_true '.files == 0 and (.errors | length) == 1'
	is_true '.errors[0].path == "from/a?"'
	is_true '.errors[0].error == "Too many open files"'
}

# enormous: three files that are longer together than any file may be, in $huge
enormous() {
	huge=$(mktemp -d /dev/shm/ktask-warm.XXXXXX) || skip "no /dev/shm"
	truncate -s 7E "$huge"/{1,2,3} || skip "no file may be so long"
}

@test "a failure of no file is told, beside those of files, and counts none as read" {
	enormous
	run -1 --separate-stderr "$ktask" warm --json from/nosuch "$huge"/*
	is_true '.files == null and .errors == [
		{ path: "from/nosuch", offset: 0,
		  error: "No such file or directory" },
		{ path: null, offset: 0, error: "File too large" }]'
	[[ $stderr == *"ktask: warming: File too large" ]]
	run -1 --separate-stderr "$ktask" warm "$huge"/*
	[ "$stderr" = "ktask: warming: File too large" ]
	[ -z "$output" ]
}

@test "a name cannot write on the terminal" {
	mkdir bad
	mkfifo bad/$'a\e[2J\nb\xc2\x9b\xc3\xa9\xff'
	run -1 --separate-stderr "$ktask" warm bad/*
	[ "$stderr" = "ktask: warming 'bad/a?[2J?b??"$'\xc3\xa9'"?': not a regular file" ]
}

@test "what cannot be warmed is named, the rest is warmed" {
	run -1 --separate-stderr "$ktask" warm from/nosuch from from/small
	[[ $output == "1 file: 14 bytes in "* ]]
	[[ $stderr == *"accessing 'from/nosuch': No such file or directory"* ]]
	[[ $stderr == *"warming 'from': is a directory"* ]]
	mkfifo pipe
	run -1 --separate-stderr "$ktask" warm pipe
	[[ $stderr == "ktask: warming 'pipe': not a regular file" ]]
	# No line of zeros.
	[ -z "$output" ]
}

@test "a file without permission" {
	[ "$EUID" -ne 0 ] || skip "root may read everything"
	chmod 0 from/small
	run -1 --separate-stderr "$ktask" warm --recursive from
	[[ $stderr == "ktask: warming 'from/small': Permission denied" ]]
	[[ $output == "13 files: "* ]]
	chmod 644 from/small
}

# Does $2 as soon as anybody opens the file $1, who waits meanwhile.
when_opened() {
	perl -e '$SIG{IO} = sub { system($ARGV[1]); exit };
		open(my $file, "+<", $ARGV[0]) or exit;
		fcntl($file, 1024, 1) or exit; # F_SETLEASE, F_WRLCK
		open(my $ready, ">", "ready");
		sleep 1 for 1 .. 60' "$1" "$2" 3>&- &
	perl_pid=$!
	while [ ! -e ready ]; do
		kill -0 "$perl_pid" || skip "no leases on files here"
		sleep 0.05
	done
}

@test "no link is followed that a file or a directory was replaced by" {
	mkdir secret
	seq 99 | tee secret/1 >secret/2
	when_opened from/small 'rm from/large; ln -s ../secret/1 from/large
		mv from/deep away; ln -s ../secret from/deep'
	run -1 --separate-stderr "$ktask" warm --threads 1 from/small \
		--recursive from
	wait "$perl_pid"
	[[ $stderr == *"warming 'from/large': Too many levels of symbolic links"* ]]
	[[ $stderr == *"warming 'from/deep/1': Not a directory"* ]]
	# One that the user names is.
	run -0 "$ktask" warm from/large
}

@test "files of sysfs, which say to be longer than they are" {
	local from=/sys/devices/system/cpu/online direct
	[ -r "$from" ] || skip "no sysfs"
	for direct in '' --direct; do
		run -0 --separate-stderr "$ktask" warm --json $direct "$from"
		is_true ".bytes == $(wc -c <"$from")"
	done
}

# interrupted OPTION...: in the middle of a file of holes, which is read for minutes
interrupted() {
	local pid status=0 chars=0

	truncate -s 4T from/endless || skip "no file may be so long"
	# A shell starts what runs in the background with SIGINT ignored.
	env --default-signal=INT "$ktask" warm --direct "$@" from/small \
		from/endless >out 2>err 3>&- &
	pid=$!
	for ((i = 0; i < 1200 && chars < 64 << 20; i++)); do
		chars=$(sed -n 's/^rchar: //p' "/proc/$pid/io")
		sleep 0.05
	done
	kill -INT $pid
	wait $pid || status=$?
	cat out err
	[ "$status" -eq 130 ]
	[ "$(<err)" = "ktask: warming: interrupted" ]
	output=$(<out)
}

@test "an interrupt prints what was read so far" {
	interrupted
	[[ $output =~ ^so\ far:\ [0-9.]+\ [MGT]iB\ in\ [0-9.]+\ s,\ [0-9.]+\ GB/s, ]]
	interrupted --json
	is_true '.interrupted and .files == null and .errors == []'
	is_true '.bytes >= 1048576 and .seconds > 0'
	run -0 "$ktask" warm --json from/small
	is_true '.interrupted == false'
}
