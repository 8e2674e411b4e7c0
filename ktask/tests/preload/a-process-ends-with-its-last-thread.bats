#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A process whose main thread has ended ends with the last thread of the program, as it
# does without the shim, whose own threads do not count.

load shim.bash

unset KTASK_RUN_MIN
# Other tests run beside these.
export KTASK_OVERLOAD=ignore

# ended WAY CASE: what it printed, and its status
ended() {
	local status=0

	$1 timeout -s KILL 100 "$PROGRAMS/last-thread-cases" "$2" || status=$?
	echo "status: $status"
}

modes="ahead ahead-small dry,ahead ahead-off prefault"

# ends CASE...: as without the shim, whatever the shim does
ends() {
	for one in "$@"; do
		ended plain "$one" >"$BATS_TEST_TMPDIR/plain"
		for mode in $modes; do
			echo "$one, $mode"
			KTASK_RUN_OPS=$mode ended shimmed "$one" \
				>"$BATS_TEST_TMPDIR/shimmed"
			diff -u "$BATS_TEST_TMPDIR/plain" \
				"$BATS_TEST_TMPDIR/shimmed"
		done
	done
}

@test "the main thread is the last one" {
	ends alone freed
	grep -q atexit "$BATS_TEST_TMPDIR/plain"
}

@test "another thread is the last one, whether or not it fills memory" {
	ends thread thread-fills
	grep -q 'status: 0' "$BATS_TEST_TMPDIR/plain"
}

@test "no helper that idles keeps the process alive" {
	export KTASK_IDLE_MS=1000000
	modes="mmap ahead" ends populated thread-populates
}

@test "the main thread was cancelled" {
	ends cancelled
}

@test "the main thread ended by the system call itself" {
	ends unknown
	grep -q 'status: 5' "$BATS_TEST_TMPDIR/plain"
}

@test "the watcher of an idle process sleeps, and is woken by that system call" {
	export KTASK_IDLE_MS=100
	modes="ahead dry,ahead" ends idle
	grep -q 'all sleep' "$BATS_TEST_TMPDIR/plain"
}

@test "the main thread of a child of fork" {
	ends forks thread-forks
	grep -q "child's status 0" "$BATS_TEST_TMPDIR/plain"
}

@test "a child of vfork that ends by the system call is not the main thread" {
	ends vfork
	grep -q "child's status 7" "$BATS_TEST_TMPDIR/plain"
	! grep 'the main thread has ended' "$REPORT" || false
}

@test "a signal ends what is left of the process" {
	for mode in ahead dry,ahead; do
		mkfifo "$BATS_TEST_TMPDIR/$mode"
		KTASK_RUN_OPS=$mode shimmed timeout -s KILL 100 \
			"$PROGRAMS/last-thread-cases" signal \
			>"$BATS_TEST_TMPDIR/$mode" 3>&- &
		read -r word <"$BATS_TEST_TMPDIR/$mode"
		[ "$word" = ready ]
		kill -TERM "$(pgrep -P $!)"
		status=0
		wait $! || status=$?
		[ "$status" = 143 ]
	done
}
