#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask populate`: memory, ordinary files, tmpfs and hugetlbfs, and what it
# leaves behind when it fails.

load helpers

setup() {
	shm=$(mktemp -d /dev/shm/ktask.XXXXXX)
}

teardown() {
	[ -z "${mounted:-}" ] || umount "$mounted"
	rm -rf "$shm"
}

# Bytes that a file occupies.
allocated() {
	echo $(($(stat -c '%b * %B' "$1")))
}

is_tmpfs() {
	[ "$(stat -f -c %T "$1")" = tmpfs ]
}

@test "memory" {
	run -0 --separate-stderr "$ktask" populate --anon 64M
	[ -z "$stderr" ]
	[[ $output =~ ^memory:\ 64\ MiB\ in\ [0-9.]+\ s,\ [0-9.]+\ GB/s,\ [0-9]+\ threads?,\ [0-9.]+\ s\ of\ CPU$ ]]
}

@test "--threads 1 is one thread" {
	run -0 "$ktask" populate --anon 64M --threads 1
	[[ $output == *", 1 thread, "* ]]
}

@test "a sparse tmpfs file gets its pages and keeps its length" {
	is_tmpfs "$shm" || skip "/dev/shm is no tmpfs"
	truncate -s 64M "$shm/file"
	[ "$(allocated "$shm/file")" -eq 0 ]
	run -0 "$ktask" populate "$shm/file"
	[[ $output == "$shm/file: 64 MiB in "* ]]
	[ "$(stat -c %s "$shm/file")" -eq 67108864 ]
	[ "$(allocated "$shm/file")" -ge 67108864 ]
}

@test "contents stay" {
	seq 1000000 >"$shm/file"
	local sum
	sum=$(cksum <"$shm/file")
	run -0 "$ktask" populate "$shm/file"
	[ "$(cksum <"$shm/file")" = "$sum" ]
}

@test "--allocate creates, lengthens, and never shortens" {
	is_tmpfs "$shm" || skip "/dev/shm is no tmpfs"
	run -0 "$ktask" populate --allocate 16M "$shm/file"
	[ "$(allocated "$shm/file")" -eq 16777216 ]
	run -0 "$ktask" populate --allocate 32M "$shm/file"
	[ "$(allocated "$shm/file")" -eq 33554432 ]
	run -0 "$ktask" populate --allocate 8M "$shm/file"
	[ "$(stat -c %s "$shm/file")" -eq 33554432 ]
}

@test "an ordinary file is read, and needs no right to write" {
	head -c 8M /dev/zero >"$BATS_TEST_TMPDIR/file"
	chmod 444 "$BATS_TEST_TMPDIR/file"
	run -0 "$ktask" populate "$BATS_TEST_TMPDIR/file"
	[[ $output == *": 8 MiB in "* ]]
}

@test "an empty file is populated at once" {
	: >"$shm/file"
	run -0 "$ktask" populate "$shm/file"
	[[ $output == "$shm/file: 0 bytes in "* ]]
}

@test "a path that begins with a dash" {
	cd "$shm"
	truncate -s 1M ./--file
	run -0 "$ktask" populate -- --file
}

@test "what cannot be warmed is named, with the reason" {
	says 1 "opening $shm/nosuch: No such file or directory" \
		"$ktask" populate "$shm/nosuch"
	says 1 "opening $shm: Is a directory" "$ktask" populate "$shm"
	says 1 "opening /dev/null: not a regular file" \
		"$ktask" populate /dev/null
	# Opened in the usual way, it would wait for its other end.
	mkfifo "$shm/fifo"
	says 1 "opening $shm/fifo: not a regular file" \
		timeout 300 "$ktask" populate "$shm/fifo"
	says 1 "No such file or directory" \
		"$ktask" populate --allocate 1M /nosuch/file
}

@test "a full tmpfs: the offset is told and the file is as before" {
	mkdir "$shm/small"
	mount -t tmpfs -o size=8M none "$shm/small" 2>/dev/null ||
		skip "no right to mount"
	mounted=$shm/small
	says 1 "at offset " "$ktask" populate --allocate 16M "$shm/small/new"
	[[ $stderr =~ at\ offset\ ([0-9]+)\ .*left\ in\ its\ tmpfs ]]
	# Chunks are done in any order, so that all but 8 MiB can fail.
	[ "${BASH_REMATCH[1]}" -le 8388608 ]
	[ ! -e "$shm/small/new" ]
	echo content >"$shm/small/old"
	says 1 "at offset " "$ktask" populate --allocate 16M "$shm/small/old"
	[ "$(<"$shm/small/old")" = content ]
}

@test "too few huge pages are told" {
	mkdir "$shm/huge"
	mount -t hugetlbfs none "$shm/huge" 2>/dev/null ||
		skip "no hugetlbfs to mount"
	mounted=$shm/huge
	says 1 "too few free huge pages of " \
		"$ktask" populate --allocate 1T "$shm/huge/file"
	[ ! -e "$shm/huge/file" ]
}

@test "a hugetlbfs file gets its huge pages" {
	mkdir "$shm/huge"
	mount -t hugetlbfs none "$shm/huge" 2>/dev/null ||
		skip "no hugetlbfs to mount"
	mounted=$shm/huge
	local page free
	page=$(stat -f -c %S "$shm/huge")
	free=$(</sys/kernel/mm/hugepages/hugepages-$((page / 1024))kB/free_hugepages)
	[ "$free" -ge 2 ] || skip "no free huge pages"
	run -0 "$ktask" populate --allocate $((2 * page)) "$shm/huge/file"
	[ "$(allocated "$shm/huge/file")" -eq $((2 * page)) ]
}
