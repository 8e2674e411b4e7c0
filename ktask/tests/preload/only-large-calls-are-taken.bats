#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# KTASK_RUN_MIN, KTASK_RUN_OPS and the report: what is taken, and what is said.

load shim.bash

# One call is for more than there is of address space.
@test "calls below KTASK_RUN_MIN are plain" {
	KTASK_RUN_MIN=16777216 same_output "$PROGRAMS/mmap-cases"
	nothing_taken "left 1 call on 0 bytes to the kernel: it refused the mapping"
}

@test "32 MiB is the least by default" {
	unset KTASK_RUN_MIN
	same_output "$PROGRAMS/mmap-cases"
	nothing_taken "left 1 call on 0 bytes to the kernel: it refused the mapping"
}

@test "a wrong KTASK_RUN_MIN counts as not set" {
	for wrong in "" 0 -1 12x 99999999999999999999; do
		KTASK_RUN_MIN=$wrong shimmed "$PROGRAMS/life-cases" constructor
		nothing_taken "no call that makes or gives back memory was on 32.0 MiB or more"
	done
}

@test "a large call that neither makes memory nor gives it back is not denied" {
	unset KTASK_RUN_MIN
	KTASK_RUN_OPS=mmap shimmed "$PROGRAMS/life-cases" reserved
	nothing_taken "no call that makes or gives back memory was on 32.0 MiB or more (the largest: 8.0 MiB)"
}

@test "KTASK_RUN_OPS names the calls that are taken" {
	KTASK_RUN_OPS=mlock,madvise shimmed "$PROGRAMS/mmap-cases"
	nothing_taken
	grep 'to the kernel: not named by --ops' "$REPORT"
	KTASK_RUN_OPS=mlock,madvise shimmed "$PROGRAMS/mlock-cases"
	[ "$(taken mlock call)" -ge 1 ]
	KTASK_RUN_OPS=mlock,madvise shimmed "$PROGRAMS/madvise-cases"
	[ "$(taken madvise call)" -ge 1 ]
}

@test "KTASK_RUN_REPORT=1 reports on stderr, also when that was closed" {
	export KTASK_RUN_OPS=mmap,munmap
	run env LD_PRELOAD="$SHIM" KTASK_RUN_REPORT=1 \
		"$PROGRAMS/life-cases" constructor
	[ "${#lines[@]}" -eq 4 ]
	[[ "$output" == *"ktask: run: took over 2 calls on 16.0 MiB; it had "*" touched (life-cases, "* ]]
	[[ "$output" == *"ktask: mmap: 1 call, 8388608 bytes, "* ]]
	[[ "$output" != *"left to the kernel"* ]]
	run env LD_PRELOAD="$SHIM" KTASK_RUN_REPORT=1 \
		"$PROGRAMS/life-cases" closed
	[[ "$output" == *"ktask: mmap: 1 call, 8388608 bytes, "* ]]
}

@test "the report never lands in a file of the program" {
	run env LD_PRELOAD="$SHIM" KTASK_RUN_REPORT=1 \
		"$PROGRAMS/life-cases" reused "$BATS_TEST_TMPDIR/file"
	[ "$status" -eq 0 ]
	[ -e "$BATS_TEST_TMPDIR/file" ]
	[ ! -s "$BATS_TEST_TMPDIR/file" ]
	[ "$output" = ok ]
}

@test "no report unless asked for" {
	run env LD_PRELOAD="$SHIM" "$PROGRAMS/life-cases" constructor
	[ "$output" = ok ]
	run env LD_PRELOAD="$SHIM" KTASK_RUN_REPORT=0 \
		"$PROGRAMS/life-cases" constructor
	[ "$output" = ok ]
}

@test "KTASK_MAX_THREADS=1 leaves one thread" {
	KTASK_MAX_THREADS=1 shimmed "$PROGRAMS/life-cases" threads
	grep -E '^ktask: mmap: .*, 1 thread: (too little to divide|no more are allowed)' "$REPORT"
}

# The command has a library of its own beside the shim's.
@test "what a program's own library maps to read files is not taken" {
	unset KTASK_RUN_MIN
	head -c 16M /dev/zero >"$BATS_TEST_TMPDIR/file"
	shimmed "$KTASK_BUILD/ktask" warm --direct "$BATS_TEST_TMPDIR/file"
	nothing_taken
}

# Its other mmap() calls never populate, so that the shim passes them on; the shim runs
# none of the operations on files, which allocate.
@test "the library inside populates, locks and unmaps past the shim" {
	command -v nm >/dev/null || skip "no nm"
	run nm -u "$KTASK_BUILD/libktask.a"
	[ "$status" -eq 0 ]
	[[ "$output" == *" U "* ]]
	run grep -wE 'madvise|mlock|mlock2|mlockall|munlock' <<<"$output"
	[ "$status" -eq 1 ]
}

@test "nothing but what is taken or watched is exported" {
	command -v nm >/dev/null || skip "no nm"
	names=$(nm -D --defined-only "$SHIM" | awk '$2 ~ /[A-Z]/ { print $3 }' | sort | xargs)
	[ "$names" = "_Exit _exit aligned_alloc brk calloc clone execl execle execlp execv execve execveat execvp execvpe fallocate fallocate64 fexecve fork free ibv_reg_mr ibv_reg_mr_iova ibv_reg_mr_iova2 io_uring_register io_uring_register_buffers io_uring_register_buffers_tags io_uring_register_buffers_update_tag ioctl madvise malloc memalign mlock mlock2 mlockall mmap mmap64 mremap munlock munlockall munmap posix_fallocate posix_fallocate64 posix_memalign posix_spawn posix_spawnp prctl prlimit prlimit64 process_madvise pthread_create pvalloc quick_exit realloc sbrk setns setrlimit setrlimit64 shmat shmdt syscall unshare valloc" ]
}

@test "a dry run says what would be taken, and takes nothing" {
	run env LD_PRELOAD="$SHIM" KTASK_RUN_OPS=dry,mmap,munmap KTASK_RUN_REPORT="$REPORT" \
		"$PROGRAMS/life-cases" constructor
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 3 ]
	[[ "$output" == *"ktask: would do mmap of 8.0 MiB (life-cases, "* ]]
	[[ "$output" == *"ktask: would do munmap of 8.0 MiB (life-cases, "* ]]
	cat "$REPORT"
	grep -q "^ktask: run: would take over 2 calls on 16.0 MiB; it had " "$REPORT"
	[ "$(wc -l <"$REPORT")" = 1 ]
}

# Which a signal tells that ends it.
@test "a program that may write no more ends as without the report" {
	head -c 4000 /dev/zero >"$REPORT"
	run bash -c 'ulimit -f 1
		LD_PRELOAD=$0 KTASK_RUN_REPORT=$1 exec "$2" constructor' \
		"$SHIM" "$REPORT" "$PROGRAMS/life-cases"
	echo "$status $output"
	[ "$status" -eq 0 ]
	grep -qx ok <<<"$output"
	[[ $output == *"ktask: run: writing the report $REPORT: File too large (life-cases, "*")"* ]]
	[ "${#lines[@]}" = 2 ]
	[ "$(stat -c %s "$REPORT")" = 4000 ]
}

@test "nor does it end for a table that cannot be made" {
	unshare -m mount -t tmpfs none /dev/shm 2>/dev/null ||
		skip "no mount namespaces"
	run unshare -m bash -c 'mount -t tmpfs none /dev/shm
		ulimit -f 1
		LD_PRELOAD=$0 exec "$1" constructor' \
		"$SHIM" "$PROGRAMS/life-cases"
	echo "$status $output"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
}

@test "nor does it end because nobody reads what it says" {
	status=$(set +o pipefail
		{ LD_PRELOAD=$SHIM KTASK_RUN_REPORT=1 "$PROGRAMS/life-cases" \
			constructor 2>&1 >/dev/null
			echo $? >"$BATS_TEST_TMPDIR/status"; } | { exec <&-; sleep 0.5; }
		cat "$BATS_TEST_TMPDIR/status")
	[ "$status" = 0 ]
}

@test "nor does it wait for somebody who reads what it says" {
	rm "$REPORT"
	mkfifo "$REPORT"
	run timeout 300 env LD_PRELOAD="$SHIM" KTASK_RUN_REPORT="$REPORT" \
		"$PROGRAMS/life-cases" constructor
	echo "$status $output"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
}

@test "who reads a pipe gets the report" {
	rm "$REPORT"
	mkfifo "$REPORT"
	# Both ends, so that opening waits for nobody.
	exec 8<>"$REPORT"
	run shimmed "$PROGRAMS/life-cases" constructor
	[ "$status" -eq 0 ]
	read -r -t 60 -u 8 line
	exec 8>&-
	[[ $line == "ktask: run: took over "* ]]
}
