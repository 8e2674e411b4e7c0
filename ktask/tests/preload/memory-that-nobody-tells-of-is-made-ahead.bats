#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Memory of allocators that a program brings along, of sbrk() and of system calls without
# the C library is made ahead of its touches; nothing waits for a lock of an allocator.

load shim.bash

unset KTASK_RUN_MIN
# Other tests run beside these.
export KTASK_OVERLOAD=ignore

# Did helpers get no CPU, or too late for the program to see what they made?  Where memory
# is not watched at all the report tells neither.
came_late() {
	grep -qE '^ktask: ahead: .*(no helper got a CPU| [1-9][0-9.]* [KMG]iB made ahead)' \
		"$REPORT"
}

# grows PROGRAM CASE: with huge pages on advice and without; in both something is made
grows() {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for mode in ahead-small ahead; do
		: >"$REPORT"
		LD_PRELOAD="$SHIM${beside:+:$beside}" KTASK_RUN_REPORT="$REPORT" \
			KTASK_RUN_OPS=$mode run timeout -s KILL 300 "$@"
		echo "$mode $*: $status $output"
		cat "$REPORT"
		if [[ $output == "nothing was made ahead"* ]] && came_late; then
			skip "no helper got a CPU in time"
		fi
		[ "$status" -eq 0 ]
		[ "$output" = ok ]
	done
}

# installed LIBRARY: its allocator is found, in $beside
installed() {
	beside=$(/sbin/ldconfig -p | sed -n "s/.*$1\\.so\\..* => //p" | head -1)
	[ -n "$beside" ] || skip "no $1"
}

# As the report tells it: 3 % of what was touched in order, and of each mapping a first
# window, 1/16 or 2 MiB.  With "$1" MiB besides.
little_untouched() {
	awk -v besides="${1:-0}" '
		function mib(number, unit) {
			return number * (unit ~ /^G/ ? 1024 : unit ~ /^K/ ? 1 / 1024 : 1)
		}
		/^ktask: ahead: / {
			for (i = 1; i < NF; i++) {
				if ($i ~ /^mapping/) nr = $(i - 1)
				if ($i == "of") all = mib($(i + 1), $(i + 2))
				if ($i == "touched" && $(i + 1) == "in") touched = mib($(i - 2), $(i - 1))
				if ($i == "MiB" && $(i + 1) ~ /^untouched/) rest = $(i - 1)
			}
			bound = touched * 0.03 + (2 * nr > all / 16 ? 2 * nr : all / 16) + besides
			seen++
			if (rest > bound) exit 1
		}
		END { exit !seen }' "$REPORT"
}

# The same allocator in a library, or in a program: build_allocator shared|static
build_allocator() {
	local sources=$BATS_TEST_DIRNAME

	cd "$BATS_TEST_TMPDIR"
	if [ "$1" = shared ]; then
		cc -O2 -fno-builtin -fPIC -shared -o allocator.so \
			"$sources/allocators/own_allocator.c"
	else
		cc -D_GNU_SOURCE -O2 -fno-builtin -pthread -o program \
			"$sources/ahead-growth.c" \
			"$sources/allocators/own_allocator.c"
	fi
}

@test "of arrays in a program without threads" {
	grows "$PROGRAMS/ahead-static"
	made
}

@test "of system calls without the C library, where there is a watcher" {
	grows "$PROGRAMS/ahead-growth" unseen
	made
}

@test "of such calls in a program that makes a thread" {
	grows "$PROGRAMS/ahead-growth" unseen-with-threads
	made
}

# Where a page that helpers make is a huge one, the mark ahead of the program goes too.
@test "of such memory with huge pages that nobody tells of, and little in vain" {
	grep -q '\[madvise\]' /sys/kernel/mm/transparent_hugepage/enabled ||
		skip "huge pages do not come on advice here"
	grows "$PROGRAMS/ahead-growth" advised-unseen
}

# A stack of a thread, which only the C library unmaps.
@test "of such memory until something else comes in its place, of which nothing is" {
	grows "$PROGRAMS/ahead-growth" unseen-becomes-file
}

@test "of sbrk and brk, until it is taken back" {
	grows "$PROGRAMS/ahead-growth" grown-heap
	made
	grows "$PROGRAMS/ahead-growth" shrunk-heap
	made
}

@test "of an allocator in a library, which maps with its lock held" {
	build_allocator shared
	beside=$BATS_TEST_TMPDIR/allocator.so \
		grows "$PROGRAMS/ahead-growth" allocated
	made
}

@test "of an allocator in a program that makes a thread" {
	build_allocator static
	grows ./program allocated-with-threads
	made
}

@test "of an allocator in a program without threads none is, and the report says why" {
	build_allocator static
	for mode in ahead-small ahead; do
		: >"$REPORT"
		KTASK_RUN_OPS=$mode run shimmed timeout -s KILL 300 \
			./program allocated
		echo "$status $output"
		cat "$REPORT"
		[[ $output == "nothing was made ahead"* ]]
		grep -q "256.0 MiB to the kernel: made by an allocator other than the C library's" "$REPORT"
	done
}

# made_by WORD LIBRARY...: with each of these allocators that is installed
made_by() {
	for allocator in "${@:2}"; do
		/sbin/ldconfig -p | grep -q "$allocator" || continue
		installed "$allocator"
		grows "$PROGRAMS/ahead-growth" "$1"
		# These programs go on without helpers.
		made_or_skip
		little_untouched
	done
	[ -n "$beside" ] || skip "none of ${*:2}"
}

@test "of small blocks of jemalloc and mimalloc, and little in vain" {
	made_by small-blocks libjemalloc libmimalloc
}

@test "of large blocks of tcmalloc and mimalloc" {
	made_by large-block libtcmalloc_minimal libmimalloc
}

# It maps a MiB when it needs one: nothing lies ahead of the program.
@test "of small blocks of tcmalloc nothing is, and the program is as without" {
	installed libtcmalloc_minimal
	grows "$PROGRAMS/ahead-growth" small-blocks
	grep -q 'took over nothing: no call that makes or gives back memory was on 32.0 MiB or more' "$REPORT"
}

@test "of slices of a Go program with a part of C, and little in vain" {
	command -v go >/dev/null || skip "no go"
	cd "$BATS_TEST_TMPDIR"
	GOCACHE=$PWD/cache GOPATH=$PWD/path GO111MODULE=off CGO_ENABLED=1 \
		GOTOOLCHAIN=local GOFLAGS= go build -o program \
		"$BATS_TEST_DIRNAME/allocators/touch_slices.go"
	ldd program | grep -q libc || skip "linked statically"
	grows ./program
}

@test "not of memory that reserves none, where the shim was told of it" {
	grows "$PROGRAMS/ahead-growth" unreserved
}
