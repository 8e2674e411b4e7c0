#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# umt stat, top and record run a program that knows nothing of them, and tell
# what its threads did.

load helpers

# Watching a program needs rights to all of the machine, which umtd does not
# lend; to be told that needs none.
setup() {
	case $BATS_TEST_DESCRIPTION in
	*"before anything runs") ;;
	*) need_bpf ;;
	esac
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	rm -f /tmp/umt-$$
}

# One holds a lock and sleeps until the other has waited for it for a second, or
# for a minute where who waits is not to be seen.
locked() {
	cat >locked <<-'SH'
	#!/bin/sh
	rm -f held
	: >lock
	flock lock sh -c ': >held
		i=0
		while [ $i -lt 60 ] && ! grep -q -e "-> FLOCK" /proc/locks; do
			i=$((i + 1))
			sleep 1
		done
		exec sleep 1' &
	i=0
	while [ ! -e held ] && [ $i -lt 600 ]; do
		i=$((i + 1))
		sleep 0.05
	done
	flock lock true
	wait
	SH
	chmod +x locked
}

@test "stat: who only sleeps loses nothing" {
	# Its first run may wait for a disk.
	for _ in {1..10}; do
		run -0 "$umt" stat --json -o stat.json -- sleep 0.3
		[ -z "$output" ]
		jq -e '.lost_core_s < 0.1' stat.json && break
	done
	is_true '.threads == 1 and .exit_status == 0' stat.json
	is_true '.blocked_by_s.waiting >= 0.25' stat.json
	is_true '.elapsed_s >= 0.3 and .lost_events == 0' stat.json
	is_true '.lost_core_s < 0.1 and .lost_share < 0.5' stat.json
	# All of the thread's time is somewhere.
	is_true '.running_s + .ready_s + .blocked_s <= .elapsed_s' stat.json
	is_true '(.blocked_by_s | add) - .blocked_s < 0.001' stat.json
}

@test "stat: who waits for a lock leaves a core unused" {
	locked
	run -0 "$umt" stat --json -o stat.json ./locked
	is_true '.threads >= 5' stat.json
	is_true '.blocked_by_s.other >= 0.2' stat.json
	is_true '.lost_core_s >= 0.2 and .lost_share > 0' stat.json
	is_true '.lost_core_s <= .elapsed_s * .cores' stat.json
}

@test "stat: the summary goes to standard error, the output is the program's" {
	run -0 --separate-stderr "$umt" stat -- echo hello
	[ "$output" = hello ]
	[[ $stderr == *", 1 thread, "*"lost to blocking: "*"%"* ]]
}

@test "the exit status is the program's" {
	run -7 "$umt" stat -- sh -c 'exit 7'
	run -7 "$umt" record -- sh -c 'exit 7'
	run -7 "$umt" top -- sh -c 'exit 7'
	run -143 "$umt" stat -- sh -c 'kill $$'
	says 127 "starting ./nothing: No such file" "$umt" stat ./nothing
	: >plain
	says 126 "starting ./plain: Permission denied" "$umt" stat ./plain
}

@test "record: each thread's stretches follow one another, and cores' too" {
	locked
	run -0 "$umt" record -o trace.json -- ./locked
	is_true '.lostEvents == 0' trace.json
	is_true '[.traceEvents[] | select(.ph == "X") | .name]
		| contains(["running", "blocked: waiting", "blocked: other"])' \
		trace.json
	is_true '[.traceEvents[] | select(.name == "thread_name") | .args.name]
		| contains(["core 0", "flock", "sleep"])' trace.json
	# A microsecond for rounding.
	is_true '[.traceEvents[] | select(.ph == "X")]
		| group_by([.pid, .tid]) | all(sort_by(.ts)
		| [., .[1:]] | transpose | .[:-1]
		| all(.[0].ts + .[0].dur <= .[1].ts + 1))' trace.json
}

@test "record: a thread that ended before its name was read has its process's" {
	cat >brief.py <<-'PY'
	import threading, time
	threads = [threading.Thread(target=print) for _ in range(50)]
	for thread in threads: thread.start(); thread.join()
	# So long its own name may take to be read on a busy machine.
	time.sleep(2)
	PY
	run -0 "$umt" record -o trace.json -- python3 brief.py
	is_true '[.traceEvents[] | select(.name == "thread_name"
		and .pid != 0 and .pid != .tid) | .args.name]
		| length >= 50 and all(test("^[0-9]+$") | not)' trace.json
}

@test "record: what a thread but the first executes is told as well" {
	cat >execs.py <<-'PY'
	import os, threading
	# So long its name may take to be read on a busy machine.
	exec = lambda: os.execvp("sleep", ["sleep", "2"])
	threading.Thread(target=exec).start()
	threading.Event().wait()
	PY
	run -0 "$umt" record -o trace.json -- python3 execs.py
	is_true '.lostEvents == 0' trace.json
	is_true '[.traceEvents[] | select(.ph == "X" and .pid == .tid
		and .name == "blocked: waiting") | .dur] | max > 300000' trace.json
	is_true '[.traceEvents[] | select(.name == "thread_name"
		and .pid == .tid) | .args.name] | contains(["sleep"])' trace.json
}

@test "record: a name that cannot be written is told before anything runs" {
	says 1 "record: opening no/such: No such file" \
		"$umt" record -o no/such -- touch ran
	says 1 "stat: opening no/such: No such file" \
		"$umt" stat -o no/such -- touch ran
	[ ! -e ran ]
}

@test "who may not load eBPF is told so, before anything runs" {
	local as_nobody=()
	if [ "$(id -u)" = 0 ]; then
		command -v setpriv >/dev/null || skip "no setpriv"
		as_nobody=(setpriv --bounding-set=-all --inh-caps=-all
			--reuid=65534 --clear-groups --no-new-privs)
		chmod 777 .
	elif [ -z "$("$umt" info --json | jq -r .bpf.why)" ]; then
		skip "this user may"
	fi
	# Where the tests are may be closed to others.
	install -m 755 "$umt" /tmp/umt-$$
	for what in stat record top; do
		says 1 "watching threads: " "${as_nobody[@]}" \
			/tmp/umt-$$ $what -- touch ran
	done
	[ ! -e ran ]
}

@test "who starts it may ignore signals: so does the program, and it ends" {
	deaf=(perl -e '$SIG{$_} = "IGNORE" for qw(CHLD INT QUIT); exec @ARGV')
	mask=$("${deaf[@]}" grep SigIgn /proc/self/status)
	run -0 --separate-stderr timeout 100 "${deaf[@]}" "$umt" stat -- \
		grep SigIgn /proc/self/status
	[ "$output" = "$mask" ]
	run -7 timeout 100 "${deaf[@]}" "$umt" stat -- sh -c 'exit 7'
}

@test "record: a trace that is not whole is told, and has no end" {
	unshare --mount true 2>/dev/null || skip "no mount namespace"
	run unshare --mount sh -c '
		mkdir small && mount -t tmpfs -o size=16k none small || exit 77
		"$1" record -o small/trace.json -- sh -c "
			i=0
			while [ \$i -lt 300 ]; do
				sleep 0
				i=\$((i + 1))
			done" 2>said
		echo "status $?"
		tail -c 100 small/trace.json >end' sh "$umt"
	[ "$status" -ne 77 ] || skip "no tmpfs"
	[[ $output == *"status 1"* ]]
	[ "$(wc -l <said)" -eq 1 ]
	grep -q "record: the trace is not whole: writing .*No space left" said
	run -1 grep lostEvents end
}

shows_or_ends() { # PID FILE TEXT
	grep -qF -- "$3" "$2" || ! kill -0 "$1" 2>/dev/null
}

# top_until TEXT COMMAND...: $output is what top showed of the command until that was there;
# then there is a file "seen", and who opens the FIFO "end" reads its end
top_until() {
	local text=$1 top status=0

	shift
	mkfifo end
	"$umt" top -i 100 -- "$@" >shown 2>&1 3>&- &
	top=$!
	becomes shows_or_ends "$top" shown "$text"
	: >seen
	for _ in {1..60}; do
		kill -0 "$top" 2>/dev/null || break
		timeout 1 bash -c ': >end; sleep 0.1' || :
	done
	wait "$top" || status=$?
	output=$(<shown)
	[ "$status" -eq 0 ]
}

@test "top: shows threads, shares and cores" {
	cat >waits.pl <<-'PL'
	select(undef, undef, undef, 1) until -e "seen";
	open(my $end, "<", "end");
	PL
	top_until "100 %  waiting" perl waits.pl
	[[ $output == *"1 thread: 0 running, 0 ready, 1 blocked"* ]]
	[[ $output == *"core 0: busy "*"idle while blocked "* ]]
	[[ $output == *" perl "*"100 %  waiting"* ]]
}

@test "top: why pictures cannot be written is told" {
	[ -w /dev/full ] || skip "no /dev/full"
	says 1 "top: writing the output: No space left" \
		bash -c '"$1" top -i 50 -- sleep 3 >/dev/full' bash "$umt"
}

@test "top: what a thread calls itself is no order to the terminal" {
	cat >red.pl <<-'PL'
	$0 = "\e[31mred";
	select(undef, undef, undef, 0.1) until -e "seen";
	open(my $end, "<", "end");
	PL
	top_until " ?[31mred " perl red.pl
	[[ $output == *" ?[31mred "* ]]
	[[ $output != *$'\e'* ]]
}

@test "top: of many threads those with something to do are shown" {
	cat >many.sh <<-'SH'
	i=0
	sleeps=
	while [ $i -lt 40 ]; do sleep 300 & sleeps="$sleeps $!"; i=$((i + 1)); done
	# Names are read when a thread has waited.
	perl -e '$0 = "busy-one"; select(undef, undef, undef, 0.1);
		$end = time + 60; 1 until -e "seen" || time > $end'
	kill $sleeps
	wait
	SH
	top_until " busy-one " sh many.sh
	[[ $output == *" busy-one "* ]]
}

has_threads() { # PID NUMBER
	[ "$(ls "/proc/$1/task" | wc -l)" -eq "$2" ]
}

@test "top: shows the threads of a process that runs, old and new" {
	cat >threads.py <<-'PY'
	import threading
	def wait(): open("end").read()
	threads = [threading.Thread(target=wait) for _ in range(3)]
	for thread in threads: thread.start()
	open("more").read()
	late = threading.Thread(target=wait)
	late.start()
	PY
	mkfifo more end
	python3 threads.py 3>&- &
	pid=$!
	becomes has_threads "$pid" 4
	"$umt" top -i 100 -p "$pid" >shown 2>&1 3>&- &
	top=$!
	becomes shows_or_ends "$top" shown \
		"4 threads: 0 running, 0 ready, 4 blocked"
	: >more
	becomes shows_or_ends "$top" shown "5 threads: "
	becomes has_threads "$pid" 5
	kill "$pid"
	wait "$pid" || :
	status=0
	wait "$top" || status=$?
	output=$(<shown)
	# Before 6.9 no descriptor stands for any thread but the first.
	[[ $output != *"Invalid argument" ]] || skip "not on this kernel"
	[ "$status" -eq 0 ]
	[[ $output == *"4 threads: 0 running, 0 ready, 4 blocked"* ]]
	[[ $output == *"5 threads: "* ]]
	[[ $output == *" python3 "*"100 %  waiting"* ]]
	says 1 "watching process $pid: No such process" "$umt" top -p "$pid"
}

@test "top: ends with the process, although nobody asks how that ended" {
	cat >parent.pl <<-'PL'
	# Its name has what stands behind names in /proc.
	my $pid = fork;
	if (!$pid) { $0 = "a) R (b\n"; open(my $end, "<", "end"); exit }
	open(my $file, ">", "child.new"); print $file "$pid\n"; close $file;
	rename "child.new", "child";
	sleep 60;
	PL
	mkfifo end
	perl parent.pl 3>&- &
	parent=$!
	becomes test -e child
	timeout 100 "$umt" top -i 100 -p "$(cat child)" >shown 2>&1 3>&- &
	top=$!
	becomes shows_or_ends "$top" shown "1 thread: "
	: >end
	status=0
	wait "$top" || status=$?
	output=$(<shown)
	kill "$parent"
	[[ $output != *"Invalid argument" ]] || skip "not on this kernel"
	[ "$status" -eq 0 ]
	[[ $output == *"1 thread: 0 running, 0 ready, 1 blocked"* ]]
}

@test "in a container it calls threads as the container does" {
	unshare --pid --fork --mount-proc true 2>/dev/null ||
		skip "no PID namespace"
	run -0 unshare --pid --fork --mount-proc \
		"$umt" record -o trace.json -- sleep 0.3
	# It is the first process there.
	is_true '[.traceEvents[] | select(.name == "thread_name"
		and .pid != 0) | [.pid, .tid]] == [[2, 2]]' trace.json
}

@test "where /proc is another namespace's threads have their names all the same" {
	unshare --pid --fork true 2>/dev/null || skip "no PID namespace"
	# So long its name may take to be read on a busy machine.
	run -0 unshare --pid --fork "$umt" record -o trace.json -- sleep 2
	is_true '[.traceEvents[] | select(.name == "thread_name" and .pid != 0)
		| [.pid, .tid, .args.name]] == [[2, 2, "sleep"]]' trace.json
	says 1 "watching process 1: /proc is not that of this PID namespace" \
		unshare --pid --fork "$umt" top -p 1
}

@test "threads that are made and end by the hundred" {
	cat >many <<-'SH'
	i=0
	while [ $i -lt 200 ]; do true | cat & i=$((i + 1)); done
	wait
	SH
	run -0 "$umt" stat --json -o stat.json -- sh many
	is_true '.threads >= 401 and .lost_events == 0' stat.json
}
