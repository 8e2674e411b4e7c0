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
	[ "$(taken prefault calls)" = 4 ]
	[ "$(taken prefault "left to the kernel")" = 0 ]
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
	[ "$(taken prefault calls)" = 4 ]
	[ "$(taken munmap calls)" = "" ]
	rm "$REPORT"
	cases --prefault=wait --dry-run
	grep -q '^ktask: would do prefault of [0-9]* bytes (prefault-cases, ' \
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
	[ "$(taken prefault calls)" -ge 1 ]
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
	[ "$(taken prefault calls)" -ge 2 ]
}

@test "a handler that ends the process does not wait for the allocator" {
	for ((i = 0; i < 20; i++)); do
		run timeout -s KILL 20 "$KTASK_BUILD/ktask" run --min 1M --prefault -- \
			"$PROGRAMS/exit-cases" in-malloc
		echo "$i: $status $output"
		[ "$status" = 3 ]
	done
}
