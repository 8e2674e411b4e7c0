#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask stat`: the command is left alone, and its jobs are counted.

load helpers

# stat_json COMMAND...: the object in $output, the status in $status
stat_json() {
	run --separate-stderr "$ktask" stat --json="$BATS_TEST_TMPDIR/o" -- "$@"
	output=$(cat "$BATS_TEST_TMPDIR/o")
}

populate=(populate --anon 64M)

@test "jobs of the command, by operation" {
	stat_json "$ktask" "${populate[@]}"
	[ "$status" -eq 0 ]
	is_true '.exit_status == 0 and .signal == null'
	is_true '.wall_seconds > 0 and .user_seconds + .system_seconds > 0'
	is_true '.jobs | length == 1'
	is_true '.jobs[0] | .operation == "populate" and .count == 1
		and .failed == 0 and .units == 67108864 and .unit == "bytes"
		and .chunks >= 1 and .wall_seconds > 0
		and .caller_cpu_seconds > 0 and .helper_cpu_seconds >= 0
		and .threads_most >= 1 and .threads_mean >= 1
		and .threads_mean <= .threads_most and .helpers_lent >= 0'
	is_true '.not_understood == 0 and (.more_than_kept | not)'
}

@test "jobs of children and grandchildren count" {
	stat_json sh -c "'$ktask' populate --anon 64M; sh -c \"'$ktask' \
		populate --anon 64M & wait\""
	is_true '.jobs[0] | .count == 2 and .units == 134217728'
}

@test "jobs of a program under the shim count" {
	stat_json "$ktask" run -- python3 -c \
		'import mmap; m = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000)'
	is_true '.jobs[0] | .operation == "populate" and .count == 1
		and .units == 67108864'
}

@test "the speedup is over what one thread is known to do" {
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	stat_json "$ktask" "${populate[@]}"
	is_true '.jobs[0] | .speedup == null and .single_units_per_s == null'
	run -0 "$ktask" tune --force --size 16M --runs 1 --threads 1 \
		populate
	stat_json "$ktask" "${populate[@]}"
	is_true '.jobs[0] | (.units / .wall_seconds / .single_units_per_s)
		/ .speedup | . > 0.999 and . < 1.001'
	run -0 --separate-stderr "$ktask" stat "$ktask" "${populate[@]}"
	grep -qE '^populate .* [0-9.]+x$' <<<"$stderr"
}

@test "the table" {
	run -0 --separate-stderr "$ktask" stat "$ktask" "${populate[@]}"
	[[ $output == "memory: 64 MiB in "* ]]
	grep -qE ' ended with status 0 after [0-9.]+ s, with [0-9.]+ s of CPU' \
		<<<"$stderr"
	grep -qE '^job +count +amount +rate +wall s +caller s +helper s +thr +lent +speedup$' \
		<<<"$stderr"
	grep -qE '^populate +1 +64 MiB +[0-9.]+ GB/s( +[0-9.]+){4} +[0-9]+ ' \
		<<<"$stderr"
	! grep -vF "$ktask" <<<"$stderr" | grep -E '.{101}' || false
}

@test "a command without jobs" {
	run -0 --separate-stderr "$ktask" stat true
	[[ $stderr == *"no job was large enough to be split"* ]]
	stat_json true
	is_true '.jobs == []'
}

@test "a command's name cannot write on the terminal" {
	ln -s "$(type -P true)" "$BATS_TEST_TMPDIR/"$'a\e[2J\n'
	run -0 "$ktask" stat "$BATS_TEST_TMPDIR/"$'a\e[2J\n'
	[[ ${lines[0]} == *"/a?[2J? ended with status 0 after "* ]]
}

@test "the object goes to standard error" {
	run -0 --separate-stderr "$ktask" stat --json -- echo hello
	[ "$output" = hello ]
	jq -e '.command == ["echo", "hello"]' <<<"$stderr"
}

@test "the report goes where it is told to" {
	run -0 --separate-stderr "$ktask" stat -o "$BATS_TEST_TMPDIR/r" echo hello
	[ "$output" = hello ]
	[ -z "$stderr" ]
	grep -q '^echo ended with status 0 after' "$BATS_TEST_TMPDIR/r"
	run -0 --separate-stderr "$ktask" stat --output=- echo hello
	[ "${lines[0]}" = hello ]
	[[ $output == *"echo ended with status 0 after"* ]]
	[ -z "$stderr" ]
	run -0 --separate-stderr "$ktask" stat --json="$BATS_TEST_TMPDIR/j" \
		-o "$BATS_TEST_TMPDIR/r" echo hello
	[ -z "$stderr" ]
	jq -e '.exit_status == 0' "$BATS_TEST_TMPDIR/j"
	grep -q '^echo ended with status 0 after' "$BATS_TEST_TMPDIR/r"
}

@test "the object can be piped, as the help and the manual page say" {
	run -0 bash -o pipefail -c '"$1" stat --json -o - true | jq .exit_status' \
		- "$ktask"
	[ "$output" = 0 ]
	run -0 bash -o pipefail -c '"$1" stat --json -o /dev/fd/3 echo hello \
		3>&1 >/dev/null | jq .exit_status' - "$ktask"
	[ "$output" = 0 ]
	cd "$BATS_TEST_TMPDIR"
	run -0 --separate-stderr "$ktask" stat --json=- true
	jq -e '.exit_status == 0' <<<"$output"
	[ -z "$stderr" ]
	[ ! -e - ]
	says 2 "stat: --json=- and --output differ" \
		"$ktask" stat --json=- -o r true
	for text in "--json -o - COMMAND | jq" \
		"--json -o /dev/fd/3 COMMAND 3>&1 >/dev/null | jq"; do
		run -0 "$ktask" stat --help
		[[ $output == *"ktask stat $text"* ]]
		grep -qF "ktask stat $text" "$tree/ktask/man/ktask-stat.1"
	done
}

@test "a report that cannot be written is told before the command runs" {
	local ran=$BATS_TEST_TMPDIR/ran
	says 1 "stat: writing /nosuch/r: No such file or directory" \
		"$ktask" stat -o /nosuch/r touch "$ran"
	says 1 "writing /nosuch/r: No such file or directory" \
		"$ktask" stat --json=/nosuch/r touch "$ran"
	[ ! -e "$ran" ]
	[ -w /dev/full ] || skip "no /dev/full"
	run -1 --separate-stderr "$ktask" stat -o /dev/full touch "$ran"
	[ "$stderr" = "ktask: stat: writing /dev/full: No space left on device" ]
	[ -e "$ran" ]
	run -7 --separate-stderr "$ktask" stat -o /dev/full sh -c 'exit 7'
	[ "$stderr" = "ktask: stat: writing /dev/full: No space left on device" ]
	# More than a buffer: what failed first is told.
	run -1 --separate-stderr bash -c '"$@" >/dev/full' bash "$ktask" stat \
		--json -o - sh -c ': "$1"' sh "$(printf '%9999s' x)"
	[[ $stderr == "ktask: stat: writing -: No space left on device"* ]]
}

@test "without /proc no job can be counted: told before the command runs" {
	need_mounts
	says 1 "stat: opening the file for the accounts of jobs, /proc/" \
		unshare --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' sh \
		"$ktask" stat touch "$BATS_TEST_TMPDIR/ran"
	[ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "where files may not become large that is told, and no job that was not kept is denied" {
	local limited=(bash -c 'ulimit -f "$1" && exec "${@:2}"' bash)
	run -1 "${limited[@]}" 0 "$ktask" stat touch "$BATS_TEST_TMPDIR/ran"
	[ "$output" = "ktask: stat: creating the file for the accounts of jobs: File too large" ]
	[ ! -e "$BATS_TEST_TMPDIR/ran" ]
	# Of 1 KiB, for which 30 lines are too many.
	run -0 "${limited[@]}" 1 "$ktask" stat sh -c "for i in \$(seq -s ' ' 30); do
		'$ktask' populate --anon 64M >&2 || exit; done"
	[[ $output == *"there were more jobs than could be kept"* ]]
	run -0 "${limited[@]}" 1 "$ktask" stat true
	[[ $output == *"no job was large enough to be split"* ]]
	[[ $output != *"more jobs"* ]]
}

@test "the status is the command's" {
	stat_json sh -c 'exit 7'
	[ "$status" -eq 7 ]
	is_true '.exit_status == 7 and .signal == null'
	stat_json sh -c 'kill -TERM $$'
	[ "$status" -eq 143 ]
	is_true '.exit_status == null and .signal == 15'
	says 127 "stat: starting nosuch: No such file" "$ktask" stat nosuch
	says 126 "stat: starting /etc: Permission denied" "$ktask" stat /etc
}

@test "arguments, input, output and signals are the command's own" {
	run -0 --separate-stderr "$ktask" stat -- printf '<%s>' --json a ' b'
	[ "$output" = "<--json><a>< b>" ]
	run -0 --separate-stderr sh -c "echo in | '$ktask' stat cat"
	[ "$output" = in ]
	local mask
	mask=$(grep SigIgn /proc/self/status)
	run -0 --separate-stderr "$ktask" stat grep SigIgn /proc/self/status
	[ "$output" = "$mask" ]
}

@test "who starts it may ignore what its children end with" {
	local deaf=(perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV')
	run -7 "${deaf[@]}" "$ktask" stat -- sh -c 'exit 7'
	# The command finds that as it was.
	local mask
	mask=$("${deaf[@]}" grep SigIgn /proc/self/status)
	run -0 --separate-stderr "${deaf[@]}" "$ktask" stat -- \
		grep SigIgn /proc/self/status
	[ "$output" = "$mask" ]
	run -0 "${deaf[@]}" "$ktask" run -- grep SigIgn /proc/self/status
	[ "$output" = "$mask" ]
}

@test "an interrupt is left to the command, an end passed on" {
	local pid status=0
	env --default-signal=INT "$ktask" stat sh -c \
		'trap "exit 3" TERM; trap : INT; echo up; while :; do sleep 0.1; done' \
		>"$BATS_TEST_TMPDIR/up" 2>"$BATS_TEST_TMPDIR/err" &
	pid=$!
	until grep -q up "$BATS_TEST_TMPDIR/up"; do sleep 0.05; done
	kill -INT $pid
	sleep 0.2
	kill -TERM $pid
	wait $pid || status=$?
	[ "$status" -eq 3 ]
	grep -q "ended with status 3" "$BATS_TEST_TMPDIR/err"
}

@test "what others write is passed over" {
	stat_json sh -c "'$ktask' populate --anon 64M
		printf 'garbage\n' >>\"\$KTASK_STAT\"
		printf '\033[2J 1 0 1 0 5 5 5 5 5\n' >>\"\$KTASK_STAT\"
		head -c 3000 /dev/urandom | tr '\n' x >>\"\$KTASK_STAT\"
		printf '\npopulate 1 0 1 0 5 5 5 5\n' >>\"\$KTASK_STAT\"
		printf 'populate 1 0 -1 0 5 5 5 5 5\n' >>\"\$KTASK_STAT\"
		printf 'populate 1 0 1 0 5 5 5 5 5 5\n' >>\"\$KTASK_STAT\"
		'$ktask' populate --anon 64M
		printf unfinished >>\"\$KTASK_STAT\""
	[ "$status" -eq 0 ]
	is_true '.jobs | length == 1'
	is_true '.jobs[0] | .count == 2 and .units == 134217728'
	is_true '.not_understood >= 6'
}

@test "a command that empties the file, or takes it away" {
	stat_json sh -c ": >\"\$KTASK_STAT\"; '$ktask' populate --anon 64M"
	is_true '.jobs == []'
}

teardown() {
	[ -z "${dir-}" ] || rm -r "$dir"
}

@test "set-user-ID programs do not look at it" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	command -v setpriv >/dev/null || skip "no setpriv"
	# Users may not enter the directory that bats has.
	dir=$(mktemp -d /tmp/ktask-setuid.XXXXXX)
	chmod 755 "$dir"
	install -m 4755 -o 65532 "$build/ktask-commands" "$dir/ktask"
	! findmnt -no OPTIONS -T "$dir" | grep -q nosuid || skip "nosuid"
	install -m 600 -o 65532 <(printf 'ktask-stat 1\n') "$dir/file"
	KTASK_STAT=$dir/file run -0 setpriv --reuid 65531 --clear-groups \
		"$dir/ktask" populate --anon 64M
	[ "$(cat "$dir/file")" = "ktask-stat 1" ]
	KTASK_STAT=$dir/file run -0 setpriv --reuid 65532 --clear-groups \
		"$dir/ktask" populate --anon 64M
	[ "$(wc -l <"$dir/file")" -eq 2 ]
}

@test "nothing is left in any directory" {
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
	run -0 "$ktask" stat "$ktask" "${populate[@]}"
	[ -z "$(ls -A "$TMPDIR")" ]
}

@test "wrong usage" {
	says 2 "stat: a command is missing" "$ktask" stat
	says 2 "stat: a command is missing" "$ktask" stat --json --
	says 2 "stat: option '-o' needs a value" "$ktask" stat -o
	says 2 "--output '': the name of a file is missing" "$ktask" stat -o '' true
	says 2 "--json '': the name of a file is missing" "$ktask" stat --json= true
	says 2 "stat: unknown option '-x'" "$ktask" stat -x true
}

@test "arguments that are no UTF-8 are there, with ? for what is none" {
	run --separate-stderr "$ktask" stat --json -- true $'a\xffb' é $'\xc3'
	output=$stderr
	is_true '.command == ["true", "a?b", "é", "?"]'
}

@test "a signal ends it where nobody reads what it tells" {
	local pid
	cd "$BATS_TEST_TMPDIR"
	mkfifo json
	"$ktask" stat --json=json touch ran 2>err 3>&- &
	pid=$!
	for _ in {1..600}; do
		[ ! -e ran ] || kill "$pid" 2>/dev/null || break
		sleep 0.1
	done
	if kill -9 "$pid" 2>/dev/null; then
		echo "still there"
		return 1
	fi
}
