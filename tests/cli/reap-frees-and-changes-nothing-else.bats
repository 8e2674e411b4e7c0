#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# ktask reap: a process is killed, or ends by itself, and is gone afterwards;
# its parent is told what it would have been told.

load helpers

# A process with 200 MiB, which says on a pipe that it is there; then $1.
start() {
	mkfifo "$BATS_TEST_TMPDIR/ready"
	perl -e 'my $x = "x" x (200 << 20); $| = 1;
		open(my $ready, ">", shift) or die; print $ready "\n";
		close $ready; eval shift; exit 7' \
		"$BATS_TEST_TMPDIR/ready" "$1" 3>&- &
	pid=$!
	read -r <"$BATS_TEST_TMPDIR/ready"
}

# watch PID: ktask reap --on-exit in the background, until it watches: timeout's
# child has a descriptor for the process.
watch() {
	timeout 60 "$ktask" reap --on-exit "$1" \
		>"$BATS_TEST_TMPDIR/said" 2>&1 3>&- &
	reaper=$!
	for _ in {1..600}; do
		watcher=$(pgrep -P "$reaper") &&
			ls -l "/proc/$watcher/fd" 2>/dev/null |
			grep -q 'anon_inode:\[pidfd\]\|pidfd:' && break
		sleep 0.05
	done
	kill -0 "$reaper"
}

supported() {
	# The number of the call; a bad descriptor where the kernel has it.
	perl -e 'syscall(448, -1, 0); exit($!{ENOSYS} ? 1 : 0)' ||
		skip "the kernel has no process_mrelease"
}

@test "a thread of the kernel is not waited for" {
	[ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ] || skip "none to be seen"
	says 1 "reap: 2 is a thread of the kernel" timeout 20 "$ktask" reap 2
}

@test "a process is killed and gone" {
	supported
	start 'sleep 60'
	run -0 --separate-stderr timeout 60 "$ktask" reap "$pid"
	[ -z "$output$stderr" ]
	wait "$pid" || [ $? -eq 137 ]
	! kill -0 "$pid" || false
}

@test "one that ends by itself keeps its exit status" {
	supported
	mkfifo "$BATS_TEST_TMPDIR/end"
	start "open(my \$end, '<', '$BATS_TEST_TMPDIR/end'); <\$end>"
	watch "$pid"
	echo >"$BATS_TEST_TMPDIR/end"
	wait "$reaper"
	[ ! -s "$BATS_TEST_TMPDIR/said" ]
	wait "$pid" || [ $? -eq 7 ]
}

@test "one that is killed by somebody else is noticed" {
	supported
	start 'sleep 60'
	watch "$pid"
	kill -9 "$pid"
	wait "$reaper"
}

@test "a process that is not there" {
	says 1 "finding process 4194304: No such process" "$ktask" reap 4194304
}

@test "wrong usage" {
	says 2 "one process id is wanted" "$ktask" reap
	says 2 "one process id is wanted" "$ktask" reap 7 8
	for pid in 0 1 -5x x 7x 99999999999999999999; do
		says 2 "not a process id" "$ktask" reap -- "$pid"
	done
	says 2 "not a process id" "$ktask" reap -- -5
	says 2 "" "$ktask" reap --nosuch 7
}
