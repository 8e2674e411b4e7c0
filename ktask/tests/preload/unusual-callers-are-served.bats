#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Threads, children of three kinds, constructors, signal handlers, an exit in
# the middle: each program checks its own pages and must end.

bats_require_minimum_version 1.5.0

load shim.bash

# unusual CASE CALLS: the case succeeds and its main process had so many taken.
unusual() {
	run shimmed timeout 300 "$PROGRAMS/life-cases" "$1"
	echo "$output"
	cat "$REPORT"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
	[ "$(taken mmap call)" = "$2" ]
}

@test "a constructor of the program may call" {
	unusual constructor 1
}

# One call by the constructor, as in every case, and eight by each of six.
@test "several threads at once" {
	unusual threads 49
}

# The least that there may be is 16.
@test "a thread with 20 KiB of stack" {
	run shimmed timeout 300 "$PROGRAMS/guard-cases" little-stack 20
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
	[ "$(taken mmap call)" = 1 ]
	[ "$(taken madvise call)" = 2 ]
	[ "$(taken fallocate call)" = 1 ]
}

# One call by the constructor, one before and one after the child.
@test "a child of fork has a working library" {
	unusual fork 3
	[ "$(grep -c "^ktask: mmap: " "$REPORT")" -eq 2 ]
	[ "$(grep -m 1 "^ktask: mmap: " "$REPORT" | grep -o '[0-9]* call,')" = "1 call," ]
}

@test "clone3 with a wrong address is the kernel's to refuse" {
	unusual clone3 2
}

@test "a child of vfork gets plain calls" {
	unusual vfork 3
}

@test "a child of a bare clone gets plain calls" {
	unusual clone 3
}

@test "a signal handler may interrupt the shim" {
	run shimmed timeout 300 "$PROGRAMS/life-cases" handler
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
}

@test "exit while another thread populates" {
	run shimmed timeout 300 "$PROGRAMS/life-cases" exit
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
}

# One call by the constructor, one before and eight after.
@test "a program that closes all descriptors" {
	unusual all-closed 10
}

@test "a file is truncated under its mappings meanwhile" {
	unusual truncated 101
	[ "$(taken munmap call)" -ge 100 ]
}

@test "a constructor before the shim's own gets the plain call" {
	cat >"$BATS_TEST_TMPDIR/early.c" <<-'EOF'
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>

		static void __attribute__((constructor)) early(void)
		{
			unsigned char resident[2048];
			void *addr = mmap(0, 8 << 20, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS |
						  MAP_POPULATE, -1, 0);

			if (addr != MAP_FAILED &&
			    !mincore(addr, 8 << 20, resident) &&
			    !memchr(resident, 0, sizeof(resident)))
				puts("early ok");
		}
	EOF
	cc -D_GNU_SOURCE -shared -fPIC -o "$BATS_TEST_TMPDIR/early.so" \
		"$BATS_TEST_TMPDIR/early.c"
	run env LD_PRELOAD="$SHIM:$BATS_TEST_TMPDIR/early.so" \
		KTASK_RUN_REPORT="$REPORT" "$PROGRAMS/life-cases" constructor
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "early ok" ]
	[ "${lines[1]}" = ok ]
	[ "$(taken mmap call)" = 1 ]
}

@test "a constructor before the shim's own may clone" {
	cat >"$BATS_TEST_TMPDIR/early.c" <<-'EOF'
		#include <sched.h>
		#include <signal.h>
		#include <stdio.h>
		#include <sys/wait.h>

		static char stack[65536] __attribute__((aligned(16)));

		static int seven(void *unused)
		{
			return 7;
		}

		static void __attribute__((constructor)) early(void)
		{
			int status = 0;

			if (clone(seven, stack + sizeof(stack), SIGCHLD, NULL) > 0 &&
			    wait(&status) > 0 && WEXITSTATUS(status) == 7)
				puts("early ok");
		}
	EOF
	cc -D_GNU_SOURCE -shared -fPIC -o "$BATS_TEST_TMPDIR/early.so" \
		"$BATS_TEST_TMPDIR/early.c"
	run env LD_PRELOAD="$SHIM:$BATS_TEST_TMPDIR/early.so" \
		"$PROGRAMS/life-cases" constructor
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "early ok" ]
	[ "${lines[1]}" = ok ]
}

@test "a child of fork has no work of other threads to look for at its end" {
	run -0 shimmed "$PROGRAMS/report-cases" fork-beside-work
	[ "$output" = "0 looks" ]
}

# Or the program would wait for them where it is to become another one.
@test "helpers of another thread's call are raised before an exec" {
	[ "$(id -u)" = 0 ] || skip "not root"
	for step in 0 5; do
		KTASK_RUN_OPS=mmap run -0 nice -n $step env LD_PRELOAD="$SHIM" \
			KTASK_RUN_REPORT="$REPORT" "$PROGRAMS/report-cases" \
			exec-beside-work
		echo "nice $step: $output"
		[ "$output" != "no helper" ] || skip "no helper got a CPU"
		[ "$output" = raised ]
	done
}
