#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The programs and graphs of `make bench-tasks`, small, by each runtime and by one,
# two and five threads: a program's result is that of one thread, and a point of a
# graph is done once, after those before it.  Each compares that itself and ends with
# 1 if it is not so.  Of others' runtimes only that: two threads do.

. "${BATS_TEST_FILENAME%/*}/../../../tests/support/environment.bash"

programs='fib nqueens sort sparselu uts'
nested='nested nested-weak'
graphs='stencil metg-nearest-2 metg-fft-64 metg-all_to_all-8-uneven
	metg-all_to_all-64 metg-trivial wide-300-0'

# right NAME CASE...: that runtime's program, of the variant in $variant
right() {
	local name=$1 program threads
	program=${KTASK_BUILD:-build}/${variant:+$variant/}bench/bench-tasks-$1
	shift
	[ -x "$program" ] || skip "not built"
	for threads in ${threads_of_peers:-1 2 5}; do
		for name in "$@"; do
			echo "$program $name $threads"
			timeout 300 "$program" "$name" $threads small
		done
	done
}

@test "the runtime" {
	# shellcheck disable=SC2086
	right ktrt $programs $graphs $nested block
}

@test "the runtime without UMT" {
	export KTRT_UMT=0
	# shellcheck disable=SC2086
	right ktrt $programs $graphs $nested block
}

@test "the runtime, graphs by dependences" {
	export BENCH_TASKS_DEPEND=1
	# shellcheck disable=SC2086
	right ktrt $graphs
}

@test "the runtime's C++ face" {
	# shellcheck disable=SC2086
	right ktrtxx $programs $graphs block
}

@test "the runtime by the thread sanitizer" {
	variant=tsan
	# shellcheck disable=SC2086
	right ktrt $programs $nested metg-fft metg-all_to_all block
	# shellcheck disable=SC2086
	right ktrtxx $programs metg-fft
	export BENCH_TASKS_DEPEND=1
	right ktrt metg-fft metg-all_to_all
}

@test "the runtime by the address and undefined-behaviour sanitizers" {
	variant=asan
	# shellcheck disable=SC2086
	right ktrt $programs $nested metg-fft metg-all_to_all block
	# shellcheck disable=SC2086
	right ktrtxx $programs metg-fft
}

@test "OpenMP of gcc" {
	local threads_of_peers=2
	# shellcheck disable=SC2086
	OMP_WAIT_POLICY=passive right libgomp $programs $graphs nested
}

@test "OpenMP of clang" {
	local threads_of_peers=2
	# shellcheck disable=SC2086
	OMP_WAIT_POLICY=passive right libomp $programs $graphs nested
}

@test "oneTBB" {
	local threads_of_peers=2
	# shellcheck disable=SC2086
	right tbb $programs $graphs
	export BENCH_TASKS_FLOW=1
	# shellcheck disable=SC2086
	right tbb $graphs
}

# A clock that goes forward ten times a second: most programs take no time by it.
@test "results, whatever the clock says" {
	local clock=$BATS_TEST_TMPDIR/clock

	cat >"$clock.c" <<-'EOF'
		#include <sys/syscall.h>
		#include <time.h>
		#include <unistd.h>

		int clock_gettime(clockid_t clock, struct timespec *now)
		{
			int error = (int)syscall(SYS_clock_gettime, clock, now);

			if (clock == CLOCK_MONOTONIC)
				now->tv_nsec -= now->tv_nsec % 100000000;
			return error;
		}
	EOF
	${CC:-cc} -shared -fPIC -o "$clock.so" "$clock.c"
	export LD_PRELOAD=$clock.so
	# shellcheck disable=SC2086
	right ktrt $programs $nested
}

@test "blocking tasks, in Go and Rust too where they are built" {
	local name kind

	export BENCH_TASKS_FILE=$BATS_TEST_TMPDIR/data
	# Not each file system reads directly.
	head -c 1M /dev/urandom >"$BENCH_TASKS_FILE"
	dd if="$BENCH_TASKS_FILE" of=/dev/null bs=64k iflag=direct ||
		skip "no direct reads here"
	for name in ktrt ktrtxx libgomp tbb go tokio; do
		[ -x "${KTASK_BUILD:-build}/bench/bench-tasks-$name" ] || continue
		for kind in block block-read block-fault block-mixed; do
			echo "$name $kind"
			timeout 300 "${KTASK_BUILD:-build}/bench/bench-tasks-$name" \
				$kind 2 small
		done
	done
}
