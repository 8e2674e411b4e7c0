#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The shim never provokes a filter that kills, before or behind it; handlers
# may leave by siglongjmp(), threads may be cancelled, namespaces be left.

load shim.bash

guard() {
	run shimmed timeout 300 "$PROGRAMS/guard-cases" "$@"
	echo "$* $status $output"
	cat "$REPORT"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
}

# As guard, where its report can no longer be written, which is told.
guard_untold() {
	run shimmed timeout 300 "$PROGRAMS/guard-cases" "$@"
	echo "$* $status $output"
	[ "$status" -eq 0 ]
	[ "$(grep -v '^ktask: run: writing the report ' <<<"$output")" = ok ]
}

# Numbers of system calls on this machine, by name.
number_of() {
	echo "#include <sys/syscall.h>
SYS_$1" | cc -E -P - | tail -1
}

# A call by name, for which a filter kills that is there before COMMAND.
behind() {
	run plain "$PROGRAMS/guard-cases" filter-before "$(number_of "$1")" \
		"${@:2}"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
}

# Before the first large call, and with helpers there already.  Every tenth
# system call, another tenth each time; KTASK_TEST_ALL=1 takes all of them.
@test "a filter that kills for one call, whichever, kills no more than it did" {
	seed=${KTASK_TEST_SEED:-$RANDOM}
	step=${KTASK_TEST_ALL:-10}
	echo "# seed: $seed" >&3
	plain "$PROGRAMS/guard-cases" filter-each 0 $((seed % step)) "$step" \
		>"$BATS_TEST_TMPDIR/plain"
	grep -q '^ok' "$BATS_TEST_TMPDIR/plain"
	for later in 0 1; do
		shimmed "$PROGRAMS/guard-cases" filter-each $later \
			$((seed % step)) "$step" |
			diff -u "$BATS_TEST_TMPDIR/plain" -
	done
}

@test "a filter that kills for what the library does makes calls plain" {
	for name in clone3 futex openat set_mempolicy getpid; do
		: >"$REPORT"
		guard filter-kills "$(number_of "$name")"
		nothing_taken "then it set a system call filter"
	done
}

# On other machines the loader makes that call, too.
@test "large jobs that do not ask for the device do not look for it" {
	[ "$(uname -m)" = x86_64 ] || skip "access(2) is another call there"
	guard filter-kills-large "$(number_of faccessat)"
	[ "$(taken mmap call)" = 1 ]
}

@test "a filter that kills for opening the device makes large calls plain" {
	KTASK_ENGINE=kernel guard filter-kills-large "$(number_of openat)"
	nothing_taken "then it set a system call filter"
}

@test "what a filter refuses the library does without" {
	for name in clone3 sched_setaffinity sched_setattr getdents64 \
		get_mempolicy capget rt_sigaction; do
		: >"$REPORT"
		guard filter-refuses "$(number_of "$name")"
		[ "$(taken mmap call)" = 1 ]
	done
}

@test "a filter that kills for a question is asked nothing later either" {
	guard filter-lasts "$(number_of getpid)"
	nothing_taken "then it set a system call filter"
}

@test "a filter ends what makes memory present ahead of the program" {
	KTASK_RUN_OPS=prefault guard filter-over-prefault "$(number_of getpid)"
}

@test "a filter that kills for a question about a mapping is asked none" {
	KTASK_RUN_OPS=prefault guard filter-over-files "$(number_of fstatfs)"
	guard filter-over-segments "$(number_of shmctl)"
	KTASK_RUN_OPS=prefault guard filter-over-segments "$(number_of shmctl)"
}

@test "a filter of a child by a bare clone is heeded there, and there alone" {
	guard filter-in-clone "$(number_of getpid)"
	[ "$(taken mmap call)" = 2 ]
}

@test "a filter of a child of vfork is its own" {
	guard filter-in-vfork "$(number_of futex)"
	# Whether it shares the memory of its parent not everybody may find out.
	[ "$(id -u)" != 0 ] || [ "$(taken mmap call)" = 2 ]
}

@test "a filter of a child of vfork is asked nothing at that child's end" {
	guard filter-in-vfork "$(number_of getpid)"
}

@test "nor where that child becomes another program" {
	guard filter-in-vfork-exec "$(number_of getpid)"
}

@test "a question whether filters are possible is no filter" {
	guard filter-questions
	[ "$(taken mmap call)" = 1 ]
}

@test "behind a filter that was there before calls are plain" {
	behind clone3 env LD_PRELOAD="$SHIM" KTASK_RUN_REPORT="$REPORT" \
		"$PROGRAMS/life-cases" constructor
	[ ! -s "$REPORT" ]
}

@test "ktask run tries that filter: what is harmless is used" {
	behind mount "$KTASK_BUILD/ktask" run --report="$REPORT" \
		"$PROGRAMS/life-cases" constructor
	[ "$(taken mmap call)" = 1 ]
}

@test "ktask run tries that filter: what kills is not" {
	behind madvise "$KTASK_BUILD/ktask" run --report="$REPORT" \
		"$PROGRAMS/life-cases" constructor
	[ "$(wc -l <"$REPORT")" = 1 ]
	grep '^ktask: run: nothing can be taken over' "$REPORT"
}

@test "a handler may leave by siglongjmp" {
	guard jumps
	[ "$(taken mmap call)" -ge 1 ]
}

# jumps_from CALL: a handler leaves it by siglongjmp() again and again
jumps_from() {
	run shimmed timeout 300 "$PROGRAMS/jump-cases" "$1"
	echo "$output"
	[ "$status" -ne 77 ] || skip "$1 is not allowed"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
}

@test "a handler that leaves mlock by siglongjmp leaves no descriptor open" {
	jumps_from mlock
	[ "$(taken mlock call)" -ge 1 ]
}

@test "a handler that leaves mlockall by siglongjmp leaves no descriptor open" {
	jumps_from mlockall
	[ "$EUID" -eq 0 ] || [ "$(ulimit -l)" = unlimited ] ||
		skip "mlockall is the kernel's where not all may be locked"
	[ "$(taken mlock call)" -ge 1 ]
}

# Of what is not taken the report says how much was present.
@test "a handler that leaves munmap by siglongjmp leaves no descriptor open" {
	KTASK_RUN_OPS=mlock jumps_from munmap
}

@test "signals that kill still do" {
	guard dies 15
}

@test "threads may be cancelled" {
	guard cancelled
}

@test "the same calls are cancellation points" {
	for ops in mmap,madvise,mlock,munmap,fallocate,exit prefault ahead; do
		KTASK_RUN_OPS=$ops same_output "$PROGRAMS/guard-cases" \
			cancellation-points
	done
	plain "$PROGRAMS/guard-cases" cancellation-points \
		>"$BATS_TEST_TMPDIR/plain"
	env LD_PRELOAD="$SHIM" KTASK_RUN_OPS=dry "$PROGRAMS/guard-cases" \
		cancellation-points 2>/dev/null |
		diff "$BATS_TEST_TMPDIR/plain" -
	grep -q '^6: 1' "$BATS_TEST_TMPDIR/plain"
	grep -q '^0: 0' "$BATS_TEST_TMPDIR/plain"
}

@test "a program may leave its root, before its first large call and later" {
	[ "$(id -u)" = 0 ] || skip "not root"
	guard_untold chroot 0
	guard_untold chroot 1
}

@test "a program may give up its rights, before its first large call and later" {
	[ "$(id -u)" = 0 ] || skip "not root"
	guard_untold rights 0
	guard_untold rights 1
}

@test "a program that left its threads may change its namespace" {
	guard namespaces
}

# holds_lock PRELOAD PROGRAM: which ends, and of which nothing is taken
holds_lock() {
	: >"$REPORT"
	LD_PRELOAD=$1 KTASK_RUN_REPORT=$REPORT run timeout -s KILL 300 "$2"
	echo "$2: $status $output"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
	nothing_taken "made by an allocator other than the C library's"
}

@test "an allocator may call with its lock held" {
	cat >"$BATS_TEST_TMPDIR/alloc.c" <<-'EOC'
		#include <pthread.h>
		#include <string.h>
		#include <sys/mman.h>
		#ifdef PLAIN
		#undef MAP_POPULATE
		#define MAP_POPULATE 0
		#endif

		static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
		static char arena[1 << 22];
		static size_t used;

		void *malloc(size_t size)
		{
			char *at = arena + used;

			pthread_mutex_lock(&lock);
			if (size == 4711)
				munmap(mmap(0, 64 << 20, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS |
						    MAP_POPULATE, -1, 0),
				       64 << 20);
			used += (size + 31) & ~15ul;
			pthread_mutex_unlock(&lock);
			return at;
		}
		void free(void *at) {}
		void *calloc(size_t nr, size_t size) { return malloc(nr * size); }
		void *realloc(void *old, size_t size)
		{
			char *at = malloc(size);

			if (old)
				memcpy(at, old, size);
			return at;
		}
	EOC
	cat >"$BATS_TEST_TMPDIR/main.c" <<-'EOC'
		#include <stdio.h>
		#include <stdlib.h>

		int main(void) { puts(malloc(4711) ? "ok" : "no"); }
	EOC
	cd "$BATS_TEST_TMPDIR"
	cc -O0 -D_GNU_SOURCE -shared -fPIC -o alloc.so alloc.c
	cc -O0 -o main main.c
	cc -O0 -D_GNU_SOURCE -o whole main.c alloc.c
	cc -O0 -D_GNU_SOURCE -DPLAIN -o unasked main.c alloc.c
	holds_lock "$SHIM:./alloc.so" ./main
	# Also one that is linked into the program, before which the shim does not come.
	holds_lock "$SHIM" ./whole
	KTASK_RUN_OPS=ahead holds_lock "$SHIM" ./unasked
}
