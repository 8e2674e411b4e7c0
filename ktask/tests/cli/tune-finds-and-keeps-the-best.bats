#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask tune`: the curve, what follows from it, and that it is kept.

load helpers

setup() {
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
}

# Other processes may be busy beside this test.
tune() {
	"$ktask" tune --force --runs 1 --size 16M "$@"
}

@test "one operation: curve, chunks, best, and the file" {
	run -0 --separate-stderr tune --json populate
	[ -z "$stderr" ]
	is_true '.operations | length == 1'
	is_true '.operations[0] | .benchmark == "populate"
		and .size_bytes == 16777216 and (.rows | length >= 1)
		and .rows[0].threads == 1'
	is_true '.operations[0] as $o | $o.best
		| .threads >= 1 and .threads <= .max_threads
		and .chunk_us >= 250 and .single_bytes_per_s > 0
		and ([$o.rows[].threads] | index($o.best.threads) != null)'
	is_true '.operations[0] | if .best.threads == 1
		then .chunks == [] else [.chunks[].chunk_us]
		== [1000, 250, 500, 2000, 4000] end'
	local file=$(jq -r '.operations[0].written' <<<"$output")
	[[ $file == "$XDG_CACHE_HOME"/ktask/threads.* ]]
	local threads=$(jq '.operations[0].best.threads' <<<"$output")
	grep -q "^populate threads $threads of " "$file"
}

@test "on a terminal: a bar tells how far it is, and goes away" {
	run -0 python3 "$BATS_TEST_DIRNAME/fixtures/terminal.py" '' \
		"$ktask" tune --force --runs 1 --size 16M populate
	[ "${lines[1]}" = "status 0" ]
	python3 - "${lines[0]}" <<-'END'
	import ast, re, sys
	out = ast.literal_eval(sys.argv[1]).decode()
	bars = re.findall(r"\r\x1b\[K([^\r]*)", out)
	drawn = [b for b in bars if re.match(r"populate \[=*>? *\] +\d+ % run \d+ of \d+,", b)]
	assert any("100 %" in b for b in drawn), drawn
	assert all(len(b) < 80 for b in drawn), drawn
	# The table stands where the bar was.
	table = out.rsplit("\x1b[K", 1)[1]
	assert table.startswith("populate: ") and "speedup" in table, table
	END
}

@test "every operation, and what the table says" {
	# What everybody may lock.
	run -0 --separate-stderr tune --size 4M
	local ops nr
	ops=$("$ktask" help tune | awk 'l { print $1 } /^Operations:/ { l = 1 }')
	nr=$(wc -w <<<"$ops")
	[ "$nr" -ge 5 ]
	for op in $ops; do
		grep -q "^$op: " <<<"$output"
		grep -q "^$op threads [1-9]" "$XDG_CACHE_HOME"/ktask/threads.*
	done
	[ "$(grep -cE '^  thr  speedup ' <<<"$output")" -eq "$nr" ]
	[ "$(grep -cE '^best: [0-9]+ threads? of [0-9]+, chunks of [0-9]+ us; one thread does [0-9.]+ GB/s$' \
		<<<"$output")" -eq "$nr" ]
	[ "$(grep -c "^written to $XDG_CACHE_HOME/ktask/threads\." \
		<<<"$output")" -eq "$nr" ]
}

@test "--dry-run keeps nothing" {
	run -0 tune --dry-run fill
	[[ $output == *"not written"* ]]
	[ ! -e "$XDG_CACHE_HOME" ]
	run -0 tune --dry-run --json fill
	is_true '.operations[0].written == null'
}

@test "--threads is the most" {
	run -0 tune --threads 1 --json discard
	is_true '.operations[0] | [.rows[].threads] == [1]
		and .best.threads == 1 and .best.max_threads == 1'
}

@test "jobs begin with what was kept" {
	run -0 tune --threads 1 discard
	run -0 "$ktask" topo --json
	[ "$(jq .threads <<<"$output")" -gt 1 ] || skip "one thread here"
	sed -n 's/^discard threads 1 of 1 .*/kept/p' \
		"$XDG_CACHE_HOME"/ktask/threads.* | grep -qx kept
}

@test "--json=FILE beside the tables, --plot draws" {
	run -0 tune --json="$BATS_TEST_TMPDIR/t.json" \
		--plot "$BATS_TEST_TMPDIR/t.svg" fill
	[[ $output == "fill: "* ]]
	[[ $output == *"plot: $BATS_TEST_TMPDIR/t.svg"* ]]
	jq -e '.operations[0].benchmark == "fill"' "$BATS_TEST_TMPDIR/t.json"
	grep -q '<svg' "$BATS_TEST_TMPDIR/t.svg"
}

@test "a target that cannot be written is told before measuring" {
	# Measuring would not end within this test.
	tune_long() {
		timeout 300 "$ktask" tune --runs 4096 --size 64M "$@"
	}
	XDG_CACHE_HOME=/dev/null/cache says 1 \
		"tune: writing /dev/null/cache/ktask/threads." tune_long fill
	[[ $stderr == *": Not a directory" ]]
	says 1 "plotting to /nosuch/plot.svg: No such file or directory" \
		tune_long --plot /nosuch/plot.svg fill
	says 1 "writing /nosuch/out.json: No such file or directory" \
		tune_long --json=/nosuch/out.json fill
	[ ! -e "$XDG_CACHE_HOME" ]
}

@test "what is not kept needs no place" {
	XDG_CACHE_HOME=/dev/null/cache run -0 --separate-stderr \
		tune --dry-run fill
	[[ $output == *"not written"* ]]
}

@test "a place that another process holds is told, after the result" {
	mkdir -p "$XDG_CACHE_HOME/ktask"
	(umask 077 && : >"$XDG_CACHE_HOME/ktask/lock")
	run -1 --separate-stderr flock "$XDG_CACHE_HOME/ktask/lock" \
		"$ktask" tune --force --runs 1 --size 16M fill
	[[ $output == *"not written"* ]]
	[[ $stderr == "ktask: tune: writing $XDG_CACHE_HOME/ktask/threads."*": Device or resource busy" ]]
}

@test "garbage in the file's place is replaced" {
	run -0 tune fill
	local file=$(echo "$XDG_CACHE_HOME"/ktask/threads.*)
	head -c 3000 /dev/urandom >"$file"
	run -0 tune fill
	[ "$(head -1 "$file")" = "ktask-autotune 1" ]
	run -0 "$ktask" populate --anon 32M
}

# with_load STEP COMMAND...: where so many seconds of CPU time pass for all
# processes between two looks at /proc/stat; STEP - : where that is missing
with_load() {
	unshare --mount bash -c '
		dir=$1 step=$2
		shift 2
		if [ "$step" = - ]; then
			mount --bind "$dir" /proc
			exec "$@"
		fi
		mkfifo "$dir/stat.$$" && mount --bind "$dir/stat.$$" /proc/stat
		"${PERL:-perl}" -e '\''
			$SIG{PIPE} = "IGNORE";
			for (my $n = 0;; $n += 100 * $ARGV[1]) {
				open my $out, ">", $ARGV[0] or exit;
				syswrite $out, "cpu $n 0 0 0 0 0 0 0\n";
				close $out;
				select undef, undef, undef, 0.01;
			}'\'' "$dir/stat.$$" "$step" 3>&- &
		feeder=$!
		"$@"
		status=$?
		kill $feeder
		exit $status' bash "$BATS_TEST_TMPDIR" "$@"
}

@test "beside busy processes nothing is kept, unless by force" {
	need_mounts
	run -1 --separate-stderr with_load 1000 \
		"$ktask" tune --runs 1 --size 16M fill
	[[ $output == *"other processes kept CPUs busy"*"not written"* ]]
	[[ $stderr == "ktask: tune: keeping the best of fill: the machine was busy, other processes used "*" CPUs (--force keeps it)" ]]
	[ ! -e "$XDG_CACHE_HOME" ]
	run -0 --separate-stderr with_load 1000 \
		"$ktask" tune --force --runs 1 --size 16M fill
	[[ $output == *"written to $XDG_CACHE_HOME"* ]]
	[ -z "$stderr" ]
	run -0 --separate-stderr with_load 1000 \
		"$ktask" tune --dry-run --runs 1 --size 16M fill
	[ -z "$stderr" ]
}

@test "on an idle machine it is kept without a word" {
	need_mounts
	run -0 --separate-stderr with_load 0 \
		"$ktask" tune --runs 1 --size 16M fill
	[[ $output == *"written to $XDG_CACHE_HOME"* ]]
	[ -z "$stderr" ]
}

@test "a load that cannot be read is told before measuring" {
	need_mounts
	# Measuring would not end within this test.
	run -1 --separate-stderr with_load - \
		timeout 300 "$ktask" tune --runs 4096 --size 64M fill
	[ -z "$output" ]
	[ "$stderr" = "ktask: tune: keeping what is found: how busy the machine is cannot be read (--force keeps it, --dry-run only shows it)" ]
	[ ! -e "$XDG_CACHE_HOME" ]
}

@test "a load that cannot be read is none that is low" {
	need_mounts
	run -0 --separate-stderr with_load - \
		"$ktask" tune --force --runs 1 --size 16M fill
	[[ $output == *"is not known: /proc/stat cannot be read"* ]]
	[ -z "$stderr" ]
	run -0 with_load - \
		"$ktask" tune --dry-run --json --runs 1 --size 16M fill
	is_true '.operations[0] | .best.undisturbed == null
		and .others_cpus == null and .stolen_cpus == null'
}

@test "an interrupt writes nothing that is unfinished" {
	env --default-signal=INT "$ktask" tune --runs 4000 --size 16M fill \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" &
	local pid=$! status=0 caught
	# It has begun: interrupts (signal 2) are caught.
	for _ in {1..600}; do
		caught=$(sed -n 's/^SigCgt:\t//p' "/proc/$pid/status")
		((0x$caught & 2)) && break
		sleep 0.05
	done
	sleep 0.5
	kill -INT $pid
	wait $pid || status=$?
	[ "$status" -eq 130 ]
	grep -qE '^ktask: tune: interrupted after [0-9]+ of ' \
		"$BATS_TEST_TMPDIR/err"
	[ ! -e "$XDG_CACHE_HOME" ]
}

@test "locked memory that may not be had is told" {
	local as_somebody=
	if [ "$(id -u)" -eq 0 ]; then
		command -v setpriv >/dev/null || skip "no setpriv"
		as_somebody='setpriv --reuid 65531 --clear-groups'
	fi
	run -1 --separate-stderr bash -c "ulimit -l 64 && exec $as_somebody \
		'$ktask' tune --dry-run --runs 1 --size 16M lock"
	[[ $stderr == "ktask: tune: lock of 16 MiB: "*"locked memory may be limited"* ]]
}

@test "wrong usage" {
	says 2 "no operation 'vm-start'" tune vm-start
	says 2 "unexpected argument 'lock'" tune fill lock
	says 2 "--plot needs an operation" tune --plot x.svg
	says 2 "must end in .svg or .png" tune --plot x.pdf fill
	says 2 "--threads '0': not a number" tune --threads 0
}
