#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# --prefault: what a program would touch page by page is there when it is
# mapped, and only what it may be taken to use.

load shim.bash

cases() {
	run "$KTASK_BUILD/ktask" run --min 1M --report="$REPORT" "$@" -- \
		"$PROGRAMS/prefault-cases"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "nothing is present unless it was asked for" {
	run plain "$PROGRAMS/prefault-cases"
	expected=$output
	[ "$(grep -c ': 0%, errno 34' <<<"$output")" -ge 9 ]
	cases
	[ "$output" = "$expected" ]
	cases --ops mmap,munmap
	[ "$output" = "$expected" ]
}

@test "large memory that may be written to is present, and zero" {
	cases --prefault=wait
	for name in private 'private, odd length' shared committed; do
		grep -qx "$name: 100%, errno 34, holds 0" <<<"$output"
	done
	[ "$(taken prefault call)" = 4 ]
	[ "$(taken prefault "left to the kernel")" = "" ]
}

@test "memory that need not be used is left alone" {
	cases --prefault=wait
	for name in small 'no reserve' stack 'read only'; do
		grep -qx "$name: 0%, errno 34, holds 0" <<<"$output"
	done
	grep -qx 'no access: 0%, errno 34' <<<"$output"
}

@test "refusals are the kernel's" {
	run plain "$PROGRAMS/prefault-cases"
	expected=$(grep refused <<<"$output")
	[ -n "$expected" ]
	cases --prefault=wait
	[ "$(grep refused <<<"$output")" = "$expected" ]
}

@test "it adds to the calls that are taken, and to a dry run" {
	cases --prefault=wait --ops mlock
	[ "$(taken prefault call)" = 4 ]
	[ "$(taken munmap call)" = "" ]
	rm "$REPORT"
	cases --prefault=wait --dry-run
	grep -q '^ktask: would do prefault of [0-9.]* [KMG]iB (prefault-cases, ' \
		<<<"$output"
	grep -q '^private: 0%' <<<"$output"
}

@test "huge pages of the pool" {
	pool=/sys/kernel/mm/hugepages/hugepages-2048kB
	[ -r "$pool/free_hugepages" ] || skip "no huge pages"
	[ "$(cat "$pool/free_hugepages")" -ge 8 ] || skip "no free huge pages"
	run "$KTASK_BUILD/ktask" run --min 1M --prefault=wait -- /usr/bin/python3 -c '
import mmap
memory = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE |
                   mmap.MAP_ANONYMOUS | 0x40000)
print([line for line in open("/proc/self/smaps") if "Private_Hugetlb" in line
       and " 0 kB" not in line])'
	[[ "$output" == *"16384 kB"* ]]
}

# Helpers run where nothing else does, so how much they do is not told here.
@test "ahead of the program: what it writes is what it finds" {
	cases --prefault
	expected=$(plain "$PROGRAMS/prefault-cases" | sed 's/: [0-9]*%/: /')
	[ "$(sed 's/: [0-9]*%/: /' <<<"$output")" = "$expected" ]
	[ "$(taken prefault call)" -ge 1 ]
	cat >"$BATS_TEST_TMPDIR/t.py" <<-'EOF'
		import mmap, os, time
		fd = os.memfd_create("t")
		os.ftruncate(fd, 48 << 20)
		own = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
		shared = mmap.mmap(fd, 48 << 20)
		for at in range(0, 64 << 20, 4096):
		    own[at] = at // 4096 % 251
		    if at < 48 << 20:
		        shared[at] = at // 4096 % 241
		pid = os.fork()
		own.madvise(mmap.MADV_DONTNEED, 0, 4096) if not pid else None
		if pid:
		    os.waitpid(pid, 0)
		print(all(own[at] == at // 4096 % 251 for at in range(4096 if not pid else 0, 64 << 20, 4096)),
		      all(shared[at] == at // 4096 % 241 for at in range(0, 48 << 20, 4096)), flush=True)
		own.close()
		shared.close()
		print(os.fstat(fd).st_size)
	EOF
	run "$KTASK_BUILD/ktask" run --min 1M --report="$REPORT" --prefault \
		-- python3 "$BATS_TEST_TMPDIR/t.py"
	echo "$output"
	[ "$output" = "$(python3 "$BATS_TEST_TMPDIR/t.py")" ]
	[ "$(grep -c 'True True' <<<"$output")" = 2 ]
	[ "$(taken prefault call)" -ge 2 ]
}

@test "a handler that ends the process does not wait for the allocator" {
	for ((i = 0; i < 20; i++)); do
		run timeout -s KILL 300 "$KTASK_BUILD/ktask" run --min 1M --prefault -- \
			"$PROGRAMS/exit-cases" in-malloc
		echo "$i: $status $output"
		[ "$status" = 3 ]
	done
}

@test "a handler that unmaps does not wait for the allocator" {
	run timeout -s KILL 300 "$KTASK_BUILD/ktask" run \
		--min 1M --report="$REPORT" --prefault -- \
		"$PROGRAMS/life-cases" malloc
	echo "$status $output"
	[ "$output" = ok ]
	[ "$(taken prefault call)" -ge 50 ]
}

@test "an allocator may unmap with its lock held while others map" {
	cat >"$BATS_TEST_TMPDIR/alloc.c" <<-'EOC'
		#include <pthread.h>
		#include <string.h>
		#include <sys/mman.h>

		static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
		static char arena[1 << 26];
		static size_t used;

		static void map_and_unmap(void)
		{
			char *at = mmap(0, 1 << 16, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			munmap(at, 1 << 16);
		}
		void *malloc(size_t size)
		{
			char *at;

			pthread_mutex_lock(&lock);
			at = arena + used;
			map_and_unmap();
			used += (size + 63) & ~63ul;
			pthread_mutex_unlock(&lock);
			return at;
		}
		void *aligned_alloc(size_t align, size_t size)
		{
			return malloc(size);
		}
		void free(void *at)
		{
			pthread_mutex_lock(&lock);
			map_and_unmap();
			pthread_mutex_unlock(&lock);
		}
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
		#include <pthread.h>
		#include <stdatomic.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/mman.h>

		#define LEN (8 << 20)

		static atomic_int ended;

		static void *map(void *unused)
		{
			for (int i = 0; i < 300; i++)
				munmap(mmap(0, LEN, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				       LEN);
			ended = 1;
			return 0;
		}
		int main(void)
		{
			pthread_t thread;

			pthread_create(&thread, 0, map, 0);
			for (int i = 0; i < 100000 && !ended; i++)
				free(malloc(100));
			pthread_join(thread, 0);
			puts("ok");
		}
	EOC
	cd "$BATS_TEST_TMPDIR"
	cc -O0 -D_GNU_SOURCE -shared -fPIC -o alloc.so alloc.c
	cc -O0 -D_GNU_SOURCE -o main main.c
	LD_PRELOAD="$SHIM:./alloc.so" KTASK_RUN_REPORT=$REPORT \
		KTASK_RUN_OPS=prefault run timeout -s KILL 300 ./main
	echo "$status $output"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
	[ "$(taken prefault call)" -ge 100 ]
}
