#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask top`: jobs of every process, once as JSON or text, live on a terminal.

load helpers

fixtures=$BATS_TEST_DIRNAME/fixtures
pid=

need_threads() {
	"$ktask" topo --json | jq -e '.threads > 1' >/dev/null ||
		skip "a job gets one thread here: it has no entry"
}

# A job that is there for a while, in the background: start_job NAME [BUSY]
start_job() {
	need_threads
	python3 "$fixtures/job.py" "$build/libktask.so" "$1" 600 "${@:2}" 3>&- &
	pid=$!
}

stop_job() {
	local each
	for each in $pid; do
		kill "$each"
		wait "$each" || :
	done
	pid=
}

teardown() {
	stop_job
}

# until_true EXPRESSION COMMAND...: about the JSON that it prints at last
until_true() {
	local expression=$1 try
	shift
	for try in {1..400}; do
		run -0 --separate-stderr "$@"
		jq -e "$expression" <<<"$output" >/dev/null && return
		# To look takes as much CPU time as half of that.
		if ((try < 20)); then sleep 0.05; else sleep 0.3; fi
	done
	is_true "$expression"
}

@test "the object has its shape without any job" {
	run -0 --separate-stderr "$ktask" top --json
	[ -z "$stderr" ]
	is_true 'keys == ["jobs","permits"]'
	is_true '.permits | keys
		== ["limit","nodes","not_seen","shared","used"]'
	is_true '.permits | .limit >= 0 and .used >= 0
		and (.nodes | length >= 1) and (.not_seen | length >= 1)'
}

@test "jobs of the kernel are there too" {
	unshare --mount true 2>/dev/null || skip "no mount namespace"
	[ -d /sys/kernel/debug ] || skip "no debugfs"
	run -0 --separate-stderr unshare --mount sh -c '
		mount -t tmpfs none /sys/kernel/debug || exit 1
		mkdir /sys/kernel/debug/ktask
		echo "$$ a b/c 1/2 populate_chunk 1048576/4194304 helpers 1" \
			"wanted 2 ns 1000000" >/sys/kernel/debug/ktask/jobs
		echo nonsense >>/sys/kernel/debug/ktask/jobs
		echo "1 0/1 helpers 0 wanted 1 ns 1" >>/sys/kernel/debug/ktask/jobs
		echo "1 init board_chunk [ktask_test] 0/500 helpers 0" \
			"wanted 1 ns 5" >>/sys/kernel/debug/ktask/jobs
		echo "7 a [b clear_chunk [ktask] 3/9 helpers 1 wanted 1" \
			"ns 6" >>/sys/kernel/debug/ktask/jobs
		echo "1 x a_very_long_name_of_a_function 0/7 helpers 0" \
			"wanted 1 ns 5" >>/sys/kernel/debug/ktask/jobs
		exec "$1" top --json' sh "$ktask"
	is_true '[.jobs[] | select(.operation == "populate_chunk")] |
		length == 1 and (.[0] | .units_done == 1048576 and
		.units_total == 4194304 and .progress == 0.25 and
		.helpers == 1 and .wanted == 2 and .uid == 0 and
		.remaining_seconds == 0.003)'
	is_true '.jobs | any(.pid == 1 and .operation == "a_very_long_nam"
		and .units_total == 7)'
	is_true '.jobs | any(.pid == 1 and .operation == "board_chunk"
		and .units_total == 500)'
	is_true '.jobs | any(.pid == 7 and .operation == "clear_chunk"
		and .units_done == 3 and .units_total == 9)'
	is_true '[.jobs[] | select(.pid == 1)] | length == 2'
}

@test "a job, its process, user, progress and rate" {
	start_job my-job
	until_true '.jobs | any(.operation == "my-job" and .units_done > 100)' \
		"$ktask" top --json
	output=$(jq '.jobs[] | select(.operation == "my-job")' <<<"$output")
	is_true ".pid == $pid and .uid == $(id -u)
		and .user == \"$(id -un)\""
	is_true '.unit == "units" and .units_total == 600000
		and (.progress - .units_done / .units_total | fabs < 1e-6)
		and .units_per_s > 0 and .elapsed_seconds > 0
		and .remaining_seconds > 0 and .helpers <= .wanted'
	is_true '.units_per_s * .elapsed_seconds / .units_done
		| . > 0.99 and . < 1.01'
	stop_job
	until_true '.jobs | all(.operation != "my-job")' "$ktask" top --json
}

@test "a job says how many helpers it has" {
	start_job my-job
	until_true '.jobs | any(.operation == "my-job" and .helpers == 1)' \
		"$ktask" top --json
}

@test "the first look counts permits that helpers work with" {
	start_job my-job
	until_true '.permits.used >= 1' "$ktask" top --json
}

@test "no look shows more permits in use than there are, beside 100 jobs" {
	need_threads
	for _ in {1..4}; do
		python3 "$fixtures/job.py" "$build/libktask.so" many 0.1 0 25 3>&- &
		pid+="$! "
	done
	until_true '(.jobs | length >= 50) and .permits.used >= 1' "$ktask" top --json
	for _ in {1..50}; do
		run -0 "$ktask" top --json
		is_true '.permits | .used <= .limit'
	done
}

@test "operations count bytes" {
	need_threads
	# Where all CPUs are busy a job begins alone for 0.2 s: these take longer.
	"$ktask" bench --runs 4096 --size 512M --threads 2 \
		--json=/dev/null fill >/dev/null 2>&1 3>&- &
	pid=$!
	until_true '.jobs | any(.operation == "fill" and .unit == "bytes"
		and .units_total == 536870912)' "$ktask" top --json
}

@test "helpers that run or wait for a CPU are found on their node" {
	start_job my-job 1
	export HWLOC_XMLFILE=$fixtures/two-nodes.xml
	until_true '.jobs | any(.operation == "my-job"
		and (.nodes | map(.helpers) | add) >= 1)' "$ktask" top --json
	is_true '.permits.nodes | map(.node) == [0, 1]'
	is_true '(.permits.nodes | map(.helpers) | add) >= 1'
}

@test "no more helpers are on nodes than have a permit" {
	start_job my-job 3
	until_true '.jobs | any(.operation == "my-job" and .helpers == 1)' \
		"$ktask" top --json
	for _ in {1..10}; do
		run -0 "$ktask" top --json
		is_true '.jobs | all((.nodes // [] | map(.helpers) | add // 0) <= .helpers)'
	done
}

@test "text: once where nobody can press a key" {
	start_job my-job
	until_true '.jobs | any(.operation == "my-job" and .units_done > 100)' \
		"$ktask" top --json
	run -0 --separate-stderr "$ktask" top
	[ -z "$stderr" ]
	grep -qE '^[1-9][0-9]* jobs?, [0-9]+ helpers?; permits: [0-9]+ of [0-9]+ used by this user' \
		<<<"$output"
	grep -qE '^ +PID USER +JOB +DONE +OF +RATE +LEFT +HELPERS' <<<"$output"
	grep -qE "^ *$pid $(id -un | head -c 8) +my-job +[0-9]+% +6e\+05 +[0-9.e+]+/s +[0-9:]+ +[0-9]+ of [0-9]+" \
		<<<"$output"
	grep -q '^not seen: jobs of one thread' <<<"$output"
	! grep -q $'\033' <<<"$output" || false
}

@test "as many looks as were asked for" {
	run -0 "$ktask" top --count 3 --interval 0.05
	[ "$(grep -c '^not seen: jobs of one thread' <<<"$output")" -eq 3 ]
	TERM=dumb run -0 "$ktask" top
}

@test "names cannot write on the terminal" {
	start_job '\x1b[2J\n\xff'
	until_true '.jobs | any(.operation == "?[2J??")' "$ktask" top --json
	run -0 "$ktask" top
	grep -qF ' ?[2J?? ' <<<"$output"
	! grep -q $'\033' <<<"$output" || false
}

@test "jobs whose process is not seen are told" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	unshare --pid --fork --mount-proc true 2>/dev/null ||
		skip "no PID namespace with a /proc of its own"
	start_job my-job
	until_true '.jobs | any(.operation == "my-job" and .nodes != null)' \
		"$ktask" top --json
	# A /proc of a new namespace, where that process is not.
	until_true '.jobs | any(.operation == "my-job" and .nodes == null)' \
		unshare --pid --fork --mount-proc "$ktask" top --json
	is_true '.permits.not_seen | any(test("processes of [0-9]+ job"))'
}

@test "without a table of permits that is told" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	unshare --mount true 2>/dev/null || skip "no mount namespace"
	run -0 unshare --mount sh -c \
		"mount -t tmpfs -o ro tmpfs /dev/shm && '$ktask' top --json"
	is_true '(.permits.shared | not) and .jobs == []'
	is_true '.permits.not_seen | any(test("cannot be joined"))'
}

@test "without privileges everybody's jobs are shown" {
	[ "$(id -u)" -eq 0 ] || skip "is without"
	command -v setpriv >/dev/null || skip "no setpriv"
	start_job my-job
	until_true '.jobs | any(.operation == "my-job" and .uid == 0)' \
		setpriv --reuid 65531 --regid 65531 --clear-groups \
		"$ktask" top --json
}

@test "on a terminal: drawn anew, and q ends it" {
	run -0 python3 "$fixtures/terminal.py" q "$ktask" top
	[[ ${lines[0]} == *'\x1b[?1049h'*'\x1b[H'*'\x1b[J'*'\x1b[?1049l'* ]]
	[ "${lines[1]}" = "status 0" ]
	[ "${lines[2]}" = "echo yes" ]
}

@test "on a terminal: an interrupt ends it, and leaves it as it was" {
	run -0 python3 "$fixtures/terminal.py" '\x03' "$ktask" top
	[[ ${lines[0]} == *'\x1b[?1049l'* ]]
	[ "${lines[1]}" = "status 0" ]
	[ "${lines[2]}" = "echo yes" ]
}

@test "on a terminal: no line is too long, other keys look again" {
	start_job my-job
	run -0 python3 "$fixtures/terminal.py" 'xyq' \
		env HWLOC_XMLFILE="$fixtures/two-nodes.xml" "$ktask" top \
		--interval 100
	[ "${lines[1]}" = "status 0" ]
	python3 - "${lines[0]}" <<-'END'
	import ast, re, sys
	out = ast.literal_eval(sys.argv[1]).decode()
	looks = out.split("\x1b[H")[1:]
	assert len(looks) == 3, len(looks)
	for look in looks:
	    rows = re.sub(r"\x1b\[[?0-9]*[a-zA-Z]", "", look).split("\r\n")
	    assert len(rows) <= 24, rows
	    assert all(len(row) <= 80 for row in rows), rows
	END
}

@test "on a terminal: one row and one column are kept to" {
	local size
	for size in "1 80" "1 1" "2 1" "24 1"; do
		TERMINAL_SIZE=$size run -0 python3 "$fixtures/terminal.py" q \
			"$ktask" top
		[ "${lines[1]}" = "status 0" ]
		python3 - "${lines[0]}" $size <<-'END'
		import ast, re, sys
		out = ast.literal_eval(sys.argv[1]).decode()
		look = re.sub(r"\x1b\[[?0-9]*[a-zA-Z]", "", out.split("\x1b[H")[1])
		rows = look.split("\r\n")
		assert len(rows) <= int(sys.argv[2]), rows
		assert all(len(row) <= int(sys.argv[3]) for row in rows), rows
		END
	done
}

@test "on a terminal: so many looks, then it ends by itself" {
	run -0 python3 "$fixtures/terminal.py" '' "$ktask" top --count 2 \
		--interval 0.1
	[ "${lines[1]}" = "status 0" ]
}

@test "a reader that went away ends it" {
	run -0 bash -c "'$ktask' top --count 1000 --interval 0.01 | head -1"
}

@test "wrong usage" {
	for interval in 0 -1 x 1s nan inf "" 3601; do
		says 2 "--interval '$interval': not a number of seconds" \
			"$ktask" top "--interval=$interval"
	done
	says 2 "--count '0': not a number" "$ktask" top --count 0
	says 2 "unexpected argument 'x'" "$ktask" top x
}
