#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# ktask warm, copy and sync: files and folders, what is told of them, and that
# no content is ever changed or lost.

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
	[ -z "${mounted:-}" ] || umount "$mounted"
	[ -z "${place:-}" ] || rm -rf "$place"
}

same() {
	diff -r --no-dereference "$1" "$2"
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
	run -0 "$ktask" sync --json --recursive from
	is_true '.files == 17'
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

@test "a name cannot write on the terminal" {
	mkdir bad
	mkfifo bad/$'a\e[2J\nb\xc2\x9b\xc3\xa9\xff'
	run -1 --separate-stderr "$ktask" warm bad/*
	[ "$stderr" = "ktask: warming bad/a?[2J?b??"$'\xc3\xa9'"?: not a regular file" ]
}

@test "what cannot be warmed is named, the rest is warmed" {
	run -1 --separate-stderr "$ktask" warm from/nosuch from from/small
	[[ $output == "1 file: 14 bytes in "* ]]
	[[ $stderr == *"from/nosuch: No such file or directory"* ]]
	[[ $stderr == *"warming from: is a folder"* ]]
	mkfifo pipe
	run -1 --separate-stderr "$ktask" warm pipe
	[[ $stderr == "ktask: warming pipe: not a regular file" ]]
}

@test "a file without permission" {
	[ "$EUID" -ne 0 ] || skip "root may read everything"
	chmod 0 from/small
	run -1 --separate-stderr "$ktask" warm --recursive from
	[[ $stderr == "ktask: warming from/small: Permission denied" ]]
	[[ $output == "13 files: "* ]]
	chmod 644 from/small
}

@test "a folder is copied with all that is in it" {
	run -0 --separate-stderr "$ktask" copy --recursive from to
	[ -z "$stderr" ]
	same from to
	# Into a folder that is there.
	run -0 "$ktask" copy --recursive --direct --sync from/ to
	same from to/from
	[ "$(readlink to/link)" = small ]
}

@test "holes stay holes" {
	[ "$(stat -c %b from/sparse)" -lt 64 ] || skip "no holes here"
	run -0 "$ktask" copy from/sparse copy
	[ "$(stat -c %s copy)" -eq 8388608 ]
	[ "$(stat -c %b copy)" -lt 64 ]
	cmp from/sparse copy
}

@test "permissions go along, within the umask" {
	chmod 751 from/small
	(umask 027 && "$ktask" copy from/small copy)
	[ "$(stat -c %a copy)" = 750 ]
	# One that was there keeps its own.
	chmod 600 copy
	run -0 "$ktask" copy from/large copy
	[ "$(stat -c %a copy)" = 600 ]
	cmp from/large copy
}

@test "a longer file that was there is cut" {
	cp from/large copy
	run -0 "$ktask" copy from/small copy
	cmp from/small copy
}

# As somebody who may not read everything, in a place where that may be had.
as_somebody() {
	if [ "$EUID" -ne 0 ]; then
		"$@"
		return
	fi
	setpriv --reuid 65531 --regid 65531 --clear-groups "$@"
}

@test "a file that was there keeps what it holds if the source cannot be read" {
	[ "$EUID" -ne 0 ] || command -v setpriv >/dev/null || skip "no setpriv"
	place=$(mktemp -d /var/tmp/ktask-copy.XXXXXX)
	cp "$ktask" "$place/ktask"
	mkdir "$place/to"
	seq 10 >"$place/secret"
	seq 20 >"$place/open"
	chmod 0 "$place/secret"
	seq 300000 | tee "$place/to/secret" >"$place/to/open"
	chmod -R o+rwX "$place/to" "$place"
	chmod 0 "$place/secret"
	[ "$EUID" -ne 0 ] || chown -R 65531 "$place"
	run -1 --separate-stderr as_somebody "$place/ktask" copy \
		"$place/secret" "$place/open" "$place/to"
	[[ $stderr == "ktask: copying $place/secret: Permission denied" ]]
	[[ $output == "1 file: 51 bytes in "* ]]
	[ "$(wc -l <"$place/to/secret")" -eq 300000 ]
	cmp "$place/open" "$place/to/open"
}

@test "a file that does not say how long it is" {
	[ -r /proc/version ] || skip "no /proc"
	echo old >copy
	run -0 --separate-stderr "$ktask" copy /proc/version copy
	[ "$(cat copy)" = "$(cat /proc/version)" ]
	run -0 --separate-stderr "$ktask" copy --json /proc/version copy
	is_true ".bytes == $(wc -c </proc/version)"
}

@test "nothing is copied onto itself" {
	ln from/large hard
	mkfifo pipe
	run -1 --separate-stderr timeout 20 "$ktask" copy from/large pipe
	[[ $stderr == *"the destination is no regular file" ]]
	says_failed "they are the same file" copy from/large from/large
	says_failed "they are the same file" copy from/large hard
	says_failed "they are the same file" copy from/large from
	[ "$(wc -l <from/large)" -eq 300000 ]
}

# Exit status 1, and a message; no copies.
says_failed() {
	run -1 --separate-stderr "$ktask" "${@:2}"
	echo "$stderr"
	[[ $stderr == "ktask: "*"$1"* ]]
	[[ $output == "0 files: "* || -z $output ]]
}

@test "two sources never meet in one destination" {
	mkdir to
	run -1 --separate-stderr "$ktask" copy from/large from/deep/er/large to
	[[ $stderr == *"another source was copied there"* ]]
	cmp from/large to/large
}

@test "files that nobody may write to are copied, with their folder" {
	[ "$EUID" -ne 0 ] || command -v setpriv >/dev/null || skip "no setpriv"
	place=$(mktemp -d /var/tmp/ktask-copy.XXXXXX)
	cp "$ktask" "$place/ktask"
	mkdir "$place/from"
	seq 300000 >"$place/from/large"
	seq 7 >"$place/from/small"
	chmod 444 "$place/from/large"
	chmod 400 "$place/from/small"
	chmod 555 "$place/from"
	chmod o+rx "$place"
	[ "$EUID" -ne 0 ] || chown -R 65531 "$place"
	run -0 as_somebody "$place/ktask" copy --sync "$place/from/small" \
		"$place/copy"
	run -0 as_somebody "$place/ktask" copy --recursive "$place/from" \
		"$place/to"
	chmod 755 "$place/from"
	cmp "$place/from/small" "$place/copy"
	diff -r "$place/from" "$place/to"
	[ "$(stat -c %a "$place/copy" "$place/to/small" | xargs)" = "400 400" ]
	[ "$(stat -c %a "$place/to/large")" = "$(printf %o $((0444 & ~$(umask))))" ]
}

@test "several sources want a folder" {
	says_failed "not a folder" copy from/small from/large from/empty
	says_failed "No such file" copy from/small from/large nosuch
	[ ! -s from/empty ]
	says_failed "is a folder" copy from to
	[ ! -e to ]
}

@test "what is in .. goes into the folder, not beside it" {
	mkdir -p place/to
	run -0 --separate-stderr "$ktask" copy --recursive from/deep/.. place/to
	[ -z "$stderr" ]
	[ "$(ls place)" = to ]
	same from place/to
	# As a part of a name it is nothing special.
	run -0 "$ktask" copy from/../from/small place/to/copy
	cmp from/small place/to/copy
}

@test "a folder may be copied into itself, once" {
	run -0 timeout 60 "$ktask" copy --recursive from from/deep
	cmp from/large from/deep/from/large
	[ ! -e from/deep/from/deep/from ]
	# Twice, copies would be overwritten that are to be copied.
	seq 10 >from/deep/from/large
	run -1 --separate-stderr "$ktask" copy --recursive from from/deep
	[[ $stderr == *"the destination is to be copied as well"* ]]
	[ "$(wc -l <from/deep/from/large)" -eq 10 ]
}

@test "a full file system: the copy is told and gone" {
	mkdir small
	mount -t tmpfs -o size=1M none small 2>/dev/null ||
		skip "no right to mount"
	mounted=$PWD/small
	cp from/small small/there
	run -1 --separate-stderr "$ktask" copy from/large small
	cmp from/small small/there
	[[ $stderr == "ktask: copying from/large"*"No space left on device" ]]
	[ "$(ls small)" = there ]
	[ "$(wc -l <from/large)" -eq 300000 ]
}

@test "files and folders are written to disk" {
	run -0 --separate-stderr "$ktask" sync from/large from
	[ -z "$stderr" ]
	[[ $output == "2 files: "* ]]
	run -0 "$ktask" sync --data --recursive from
	same from from
	run -1 --separate-stderr "$ktask" sync nosuch
	[[ $stderr == *"nosuch: No such file or directory" ]]
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

@test "no link is followed that a file or a folder was replaced by" {
	mkdir -p to/from secret
	seq 99 | tee secret/1 secret/2 >to/from/small
	when_opened to/from/small 'rm from/large; ln -s ../secret/1 from/large
		mv from/deep away; ln -s ../secret from/deep'
	run -1 --separate-stderr "$ktask" copy --recursive from to
	wait "$perl_pid"
	cmp from/small to/from/small
	[[ $stderr == *"copying from/large: Too many levels of symbolic links"* ]]
	[[ $stderr == *"copying from/deep/1: Not a directory"* ]]
	[ ! -e to/from/large ]
	[ ! -e to/from/deep/1 ]
	# One that the user names is.
	run -0 "$ktask" copy from/large named
	cmp secret/1 named
}

@test "files of sysfs, which say to be longer than they are" {
	local from=/sys/devices/system/cpu/online
	[ -r "$from" ] || skip "no sysfs"
	echo "was there before, and is longer than what comes" \
		>"$BATS_TEST_TMPDIR/to"
	run -0 "$ktask" copy "$from" "$BATS_TEST_TMPDIR/to"
	cmp "$from" "$BATS_TEST_TMPDIR/to"
	run -0 "$ktask" copy --direct "$from" "$BATS_TEST_TMPDIR/new"
	cmp "$from" "$BATS_TEST_TMPDIR/new"
	# What was there is counted.
	run -0 --separate-stderr "$ktask" copy --json "$from" from/small from/deep
	is_true ".bytes == $(wc -c <"$from") + 14"
	for direct in '' --direct; do
		run -0 --separate-stderr "$ktask" warm --json $direct "$from"
		is_true ".bytes == $(wc -c <"$from")"
	done
}
