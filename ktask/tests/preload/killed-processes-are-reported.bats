#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask run --report` tells of processes that a signal ended, which cannot tell
# it themselves; who does so for them is seen by nobody.

bats_require_minimum_version 1.5.0

load shim.bash

run_reported() {
	env -u LD_PRELOAD -u KTASK_RUN_RECORDS KTASK_RUN_OPS=mmap,madvise,munmap \
		"$KTASK_BUILD/ktask" run --min 32M --report="$REPORT" -- "$@"
}

# settles COMMAND...: it succeeds within a minute
settles() {
	for _ in {1..600}; do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	cat "$REPORT"
	echo "never so: $*"
	return 1
}

ended() {
	[ ! -e "/proc/$1" ]
}

# The process that watches, by what a program printed of its environment.
watcher_of() {
	echo "$1" | sed -n 's,.*/proc/\([0-9]*\)/fd/.*,\1,p'
}

TOOK='ktask: run: took over 1 call on 64\.0 MiB'
# Where the watcher gets no CPU before somebody has asked how a child ended, only
# the kernel's last word is missing.
ENDED='(signal 9 ended it|it ended without a report: by a signal, or a system call that the shim does not see)'

@test "a program: what it did, and the signal" {
	run -137 run_reported "$PROGRAMS/report-cases" killed
	settles grep -E "^$TOOK; then signal 9 ended it \(report-cases, [0-9]+\)$" \
		"$REPORT"
	[ "$(wc -l <"$REPORT")" = 1 ]
}

@test "a program with a name that would be two lines" {
	local name=$BATS_TEST_TMPDIR/$'a\n\e[2J'
	cp "$PROGRAMS/report-cases" "$name"
	run -137 run_reported "$name" killed
	settles grep -E "^$TOOK; then signal 9 ended it \(a\?\?\[2J, [0-9]+\)$" \
		"$REPORT"
	[ "$(wc -l <"$REPORT")" = 1 ]
}

@test "on standard error: before whoever reads it has read all" {
	run -137 "$KTASK_BUILD/ktask" run --report --ops mmap -- \
		"$PROGRAMS/report-cases" killed
	[[ $output =~ ^$TOOK"; then signal 9 ended it (report-cases, "[0-9]+\)$ ]]
}

@test "a program that a program started, and a child without exec" {
	run -3 run_reported bash -c '"$1" killed; "$1" child-killed; exit 3' \
		bash "$PROGRAMS/report-cases"
	settles eval '[ "$(grep -cE "^$TOOK; then $ENDED \(report-cases, " "$REPORT")" = 2 ]'
	# The other two are bash and the child's parent.
	[ "$(grep -c '^ktask: run: took over nothing' "$REPORT")" = 2 ]
	[ "$(wc -l <"$REPORT")" = 4 ]
}

@test "a child after more forks that failed than there are records" {
	run -0 run_reported "$PROGRAMS/report-cases" forks-fail
	settles grep -E "^$TOOK; then $ENDED" "$REPORT"
	! grep -q 'not told of' "$REPORT" || false
}

@test "one that outlived all others" {
	: >"$BATS_TEST_TMPDIR/waits"
	run -0 run_reported "$PROGRAMS/report-cases" orphan-killed \
		"$BATS_TEST_TMPDIR/waits"
	rm "$BATS_TEST_TMPDIR/waits"
	settles grep -E "^$TOOK; then $ENDED" "$REPORT"
}

@test "one that is ended while it becomes another program" {
	# What it becomes has no shim, and ends by itself.
	run -0 run_reported env -u LD_PRELOAD "$BASH" -c 'echo $KTASK_RUN_RECORDS'
	settles ended "$(watcher_of "$output")"
	cat "$REPORT"
	[ "$(wc -l <"$REPORT")" = 1 ]
	grep -q 'LD_PRELOAD does not name the shim' "$REPORT"
}

@test "one that may not write its report" {
	echo begun >"$REPORT"
	run -0 run_reported bash -c 'ulimit -f 0; exec /bin/true'
	[ -z "$output" ]
	settles grep 'took over nothing; it could not write its report: File too large (true, ' \
		"$REPORT"
	[ "$(wc -l <"$REPORT")" = 2 ]
}

# limited BLOCKS COMMAND...: no file may become larger, of 1 KiB each
limited() {
	bash -c 'ulimit -f "$1" && exec "${@:2}"' bash "$@"
}

@test "a run that may make no large file: the program starts, and nobody watches" {
	for blocks in 0 100; do
		run -0 limited $blocks "$KTASK_BUILD/ktask" run --report -- \
			bash -c 'echo "[$KTASK_RUN_RECORDS]"'
		echo "$output"
		[ "${lines[0]}" = "[]" ]
		[[ ${lines[1]} =~ ^"ktask: run: took over nothing".*" (bash, "[0-9]+\)$ ]]
		[ "${#lines[@]}" = 2 ]
		run -137 limited $blocks "$KTASK_BUILD/ktask" run --report -- \
			bash -c 'kill -9 $$'
		[ -z "$output" ]
	done
	run -0 limited 100 "$KTASK_BUILD/ktask" run --report="$REPORT" -- true
	[ -z "$output" ]
	[ "$(grep -c '^ktask: run: took over nothing' "$REPORT")" = 1 ]
	run -0 limited 0 "$KTASK_BUILD/ktask" run --report="$REPORT" -- true
	[[ $output == "ktask: run: writing the report $REPORT: File too large (true, "* ]]
	# From the least on that a watcher needs.
	run -0 limited 1000 "$KTASK_BUILD/ktask" run --report -- \
		bash -c 'echo "[$KTASK_RUN_RECORDS]"'
	[[ ${lines[0]} == "[/proc/"* ]]
}

@test "a child that is made behind a system call filter" {
	run -0 run_reported "$PROGRAMS/report-cases" filtered-child
	settles grep 'nothing can be taken over: it was made behind a system call filter' \
		"$REPORT"
	grep -q 'took over nothing.*then it set a system call filter' "$REPORT"
	[ "$(wc -l <"$REPORT")" = 2 ]
}

@test "a program that another user starts tells of itself" {
	[ "$(id -u)" = 0 ] || skip "not root"
	command -v setpriv >/dev/null || skip "no setpriv"
	local somebody="setpriv --reuid 65531 --clear-groups"
	$somebody test -r "$SHIM" -a -x "$PROGRAMS/report-cases" ||
		skip "others may not use the shim here"
	run -0 "$KTASK_BUILD/ktask" run --report --ops mmap -- bash -c \
		"$somebody"' "$1" populate; echo $KTASK_RUN_RECORDS' bash \
		"$PROGRAMS/report-cases"
	echo "$output"
	settles ended "$(watcher_of "$output")"
	[ "$(grep -cE "^$TOOK; it had [^;]* touched \(report-cases, [0-9]+\)$" <<<"$output")" = 1 ]
	[[ $output != *"does not see"* && $output != *" by a signal"* ]]
}

@test "processes that end in order have the line that they wrote" {
	run -0 run_reported bash -c 'echo $KTASK_RUN_RECORDS
		for i in {1..30}; do /bin/true & (:) & done; wait'
	settles ended "$(watcher_of "$output")"
	cat "$REPORT"
	[ "$(grep -c '^ktask: run: took over nothing: ' "$REPORT")" = 61 ]
	[ "$(wc -l <"$REPORT")" = 61 ]
}

@test "the watcher is no child, and of another session and group" {
	run -0 run_reported perl -e '
		print wait, "\n";
		my ($watcher) = $ENV{KTASK_RUN_RECORDS} =~ m{/proc/(\d+)/};
		open my $stat, "<", "/proc/$watcher/stat" or die;
		my ($ppid, $group, $session) = <$stat> =~ /\) \S (\d+) (\d+) (\d+)/;
		print $ppid != $$ && $group != getpgrp ? "apart" : "near", "\n";
		print "$session $$ @{[getpgrp]}\n"'
	echo "$output"
	[ "${lines[0]}" = -1 ]
	[ "${lines[1]}" = apart ]
}

@test "the watcher holds open nothing of the program's" {
	exec 7<"$BATS_TEST_FILENAME"
	run -0 run_reported bash -c 'watcher=${KTASK_RUN_RECORDS#/proc/}
		watcher=${watcher%%/*}
		# Its name comes before it lets go.
		for i in {1..600}; do
			[ ! "/proc/$watcher/cwd" -ef / ] || break
			sleep 0.1
		done
		cd "/proc/$watcher/fd" && ls -l | sed -n "s/.* 2 -> .*//; s/.* -> //p"'
	echo "$output"
	output=$(grep -vE '^(/dev/null|/memfd:ktask-run \(deleted\)|anon_inode:.*|pidfd:.*|)$' \
		<<<"$output") || :
	[ -z "$output" ]
}

@test "standard error is let go when the program has ended" {
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	run_reported bash -c 'sleep 300 >/dev/null 2>&1 3>&- & echo $! >"$1"' \
		bash "$BATS_TEST_TMPDIR/pid" 2>"$BATS_TEST_TMPDIR/fifo" 3>&- &
	run -0 timeout 200 cat "$BATS_TEST_TMPDIR/fifo"
	kill "$(cat "$BATS_TEST_TMPDIR/pid")"
}

@test "without a report nobody watches" {
	run -0 env -u LD_PRELOAD "$KTASK_BUILD/ktask" run -- \
		bash -c 'echo "[$KTASK_RUN_RECORDS]"'
	[ "$output" = "[]" ]
}

@test "a run within a run: one line, in its own report" {
	cd "$BATS_TEST_TMPDIR"
	echo 'int main(void) { return 0; }' >static.c
	if cc -static -o static static.c; then
		run -0 run_reported "$KTASK_BUILD/ktask" run -- ./static
		[ "$(wc -l <"$REPORT")" = 1 ]
		: >"$REPORT"
		run -0 run_reported "$KTASK_BUILD/ktask" run \
			--report="$REPORT" -- ./static
		[ "$(wc -l <"$REPORT")" = 1 ]
		: >"$REPORT"
	fi
	run -137 run_reported "$KTASK_BUILD/ktask" run --report=inner -- \
		"$PROGRAMS/report-cases" killed
	settles grep 'then signal 9 ended it (report-cases, ' inner
	run -0 run_reported "$KTASK_BUILD/ktask" run --report=inner -- \
		bash -c 'echo $KTASK_RUN_RECORDS'
	settles ended "$(watcher_of "$output")"
	[ "$(wc -l <inner)" = 2 ]
	cat "$REPORT"
	[ ! -s "$REPORT" ]
}

@test "another PID namespace: no line tells of another's process" {
	unshare --pid --fork true 2>/dev/null || skip "no PID namespaces"
	run run_reported bash -c 'echo $KTASK_RUN_RECORDS; exec "$@"' bash \
		unshare --pid --fork "$PROGRAMS/report-cases" killed
	# Nor is another's waited for.
	settles ended "$(watcher_of "$output")"
	run run_reported unshare --pid --fork bash -c 'echo $KTASK_RUN_RECORDS
		"$1" child-killed; exec "$1" killed' bash "$PROGRAMS/report-cases"
	settles ended "$(watcher_of "$output")"
	cat "$REPORT"
	! grep 'then it ended' "$REPORT" || false
}
