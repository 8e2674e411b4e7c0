#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The table and the JSON object of `ktask bench`: shape, not speed.

load helpers

bench() {
	"$ktask" bench --runs 1 --size 64M --threads 1,2 "$@"
}

# Locking may be forbidden here; then vm-start cannot be tried.
need_lock() {
	local limit
	limit=$(ulimit -l)
	[ "$limit" = unlimited ] || [ "$limit" -gt 131072 ] ||
		[ "$(id -u)" = 0 ] || skip "locked memory is limited to $limit KiB"
}

check_object() {
	is_true '.benchmark == "'"$1"'" and .size_bytes == 67108864'
	is_true '.machine | (.cpu | type == "string")
		and .cpus >= 1 and .nodes >= 1 and .memory_bytes > 0
		and (.kernel | length > 0) and (.version | length > 0)
		and has("thp")
		and (.governor | type == "null" or type == "string")'
	is_true '.others_cpus >= 0 and .stolen_cpus >= 0 and .seconds > 0'
	is_true '.limits == {"runs": 1} and .settled == false'
	is_true '.memory_taken_back | .worst_factor >= 1
		and .slow_touches <= .touches_before_runs
		and .repeated_runs >= 0'
	is_true '[.rows[].threads] == [1, 2]'
	is_true '.rows[0].speedup == 1'
	is_true 'all(.rows[]; .interval == null and (.samples | length) == 1)'
	is_true 'all(.rows[]; .seconds.median > 0 and .seconds.mean > 0
		and .seconds.least == .samples[0]
		and .seconds.stddev_pct == 0 and .speedup > 0
		and .cpu_seconds > 0 and .runs == 1
		and .threads_used >= 1 and .threads_used <= .threads)'
	# The figures belong together.
	is_true '.size_bytes as $bytes | .rows[0].seconds.median as $one |
		all(.rows[];
		(.gb_per_s * .seconds.median * 1e9 / $bytes - 1 | fabs) < 1e-6
		and (.speedup * .seconds.median / $one - 1 | fabs) < 1e-6)'
}

@test "every operation prints the same object" {
	run -0 "$ktask" help bench
	local names
	names=$(sed '1,/^Operations:/d' <<<"$output" | awk '{ print $1 }')
	[[ $names == vm-start* ]]
	for name in $names; do
		case $name in vm-start | lock | unlock) continue ;; esac
		run -0 --separate-stderr bench --json "$name"
		check_object "$name"
		[ -z "$stderr" ]
	done
}

@test "those that lock too, where locking is allowed" {
	need_lock
	for name in lock unlock vm-start; do
		run -0 bench --json "$name"
		check_object "$name"
	done
}

@test "the table has the columns and a row for each count" {
	run -0 --separate-stderr bench populate
	echo "$output"
	[ -z "$stderr" ]
	[[ ${lines[0]} == "populate: "*", 64 MiB" ]]
	[[ ${lines[2]} == "Measuring 1 round." ]]
	[[ ${lines[3]} == \
		"  thr  speedup    95% interval  least sec  median sec     GB/s  cpu sec" ]]
	local number='[0-9]+\.[0-9]+'
	[[ ${lines[4]} =~ ^\ +1\ +1\.00x\ +$number\ +$number\ +$number\ +$number$ ]]
	[[ ${lines[5]} =~ ^\ +2[\ *]\ +-\ +-\ +$number\ +$number\ +$number\ +$number$ ]]
	[[ $output == *"speedup: time of the first row / time of this row"* ]]
	[[ $output == *"No speedup is shown (-): 1 round has no interval, 6 have one."* ]]
	[[ $output =~ Other\ processes\ used\ [0-9.]+\ of\ [0-9]+\ CPUs\ meanwhile ]]
}

@test "all that is printed fits a terminal of 80 columns, machine aside" {
	for rounds in 1 3 8; do
		run -0 "$ktask" bench --runs $rounds --size 1M --threads 1,2 \
			--chart populate
		! sed 2d <<<"$output" | grep -E '.{81}' || false
		run -0 "$ktask" bench --runs $rounds --chart \
			compare true 'true # that is said at great length'
		! sed 2d <<<"$output" | grep -E '.{81}' || false
	done
	run -0 "$ktask" bench --max-time 1 --precision 1 --size 1M \
		--threads 1,2 --chart populate
	! sed 2d <<<"$output" | grep -E '.{81}' || false
}

# The claims below hold for any samples, so no time is judged.
check_intervals() {
	is_true '.rows as $rows | all($rows[1:][]; . as $row
		| [range($row.runs) | $rows[0].samples[.] / $row.samples[.]]
		| (map(. - $row.interval.low | fabs < 1e-6) | any)
		and (map(. - $row.interval.high | fabs < 1e-6) | any)
		and $row.interval.confidence >= 0.95
		and $row.speedup >= $row.interval.low
		and $row.speedup <= $row.interval.high)'
}

@test "a speedup is the median of the ratios of the rounds" {
	run -0 "$ktask" bench --runs 7 --size 1M --threads 1-3 --json fill
	check_intervals
	is_true '.rows as $rows | all($rows[1:][]; . as $row
		| [range(7) | $rows[0].samples[.] / $row.samples[.]]
		| sort[3] / $row.speedup - 1 | fabs < 1e-6)'
}

@test "five rounds have no interval, six have one" {
	run -0 "$ktask" bench --runs 5 --size 1M --threads 1,2 --json fill
	is_true '.rows[1].interval == null and .settled == false'
	run -0 "$ktask" bench --runs 6 --size 1M --threads 1,2 --json fill
	check_intervals
	is_true '.rows[1].interval.confidence == 0.96875'
	run -0 "$ktask" bench --runs 5 --size 1M --threads 1,2 fill
	[[ $output == *"5 rounds have no interval, 6 have one"* ]]
}

@test "no speedup is printed or drawn without an interval" {
	local a b rounds
	for rounds in 1 5; do
		a=$(speed 1 7 7 7 7 7 7) b=$(speed 1 1 1 1 1 1 1)
		run -0 env LC_ALL=C "$ktask" bench --runs $rounds --own-time \
			--chart --names plain,faster compare "$a" "$b"
		echo "$output"
		grep -qE '^  faster +- +[(-]' <<<"$output"
		! grep -q '7\.00x' <<<"$output" || false
		[[ $output == *"  faster       | no interval"* ]]
	done
	a=$(speed 1 7 7 7 7 7 7) b=$(speed 1 1 1 1 1 1 1)
	run -0 env LC_ALL=C "$ktask" bench --runs 6 --own-time --chart \
		--names plain,faster compare "$a" "$b"
	[ "$(grep -c '7\.00x' <<<"$output")" -eq 2 ]
	[[ $output != *"no interval"* ]]
}

@test "a plot without intervals says so" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	run -0 bench --plot "$BATS_TEST_TMPDIR/one.svg" populate
	grep -q 'too few rounds' "$BATS_TEST_TMPDIR/one.svg"
	run -0 "$ktask" bench --runs 6 --size 1M --threads 1,2 \
		--plot "$BATS_TEST_TMPDIR/six.svg" populate
	! grep -q 'too few rounds' "$BATS_TEST_TMPDIR/six.svg" || false
}

@test "without --runs it ends when settled, or when time is up" {
	run -0 "$ktask" bench --max-time 2 --precision 20 --size 1M \
		--threads 1,2 --json fill
	is_true '.limits == {"precision_pct": 20, "max_seconds": 2}'
	is_true '.rows[1] | .runs >= 1 and .runs <= 1000'
	is_true '.rows[1] as $row | .settled == ($row.runs >= 8 and
		($row.interval.high - $row.interval.low) / $row.speedup <= 0.2)'
	run -0 "$ktask" bench --max-time 2 --precision 20 --size 1M \
		--threads 1,2 fill
	[[ ${lines[2]} == "Measuring for at most 2 s, until each speedup is known within 20 %." ]]
	[[ $output == *"Settled: "* || $output == *"TOO NOISY: "*"Done about the noise: "* ||
		$output == *"rounds have no interval"* ]]
}

@test "where memory becomes slow, a smaller size leaves time for rounds" {
	${CC:-cc} -shared -fPIC -o "$BATS_TEST_TMPDIR/slow.so" \
		"$BATS_TEST_DIRNAME/fixtures/slow-memory.c" -ldl
	run -0 --separate-stderr env LD_PRELOAD="$BATS_TEST_TMPDIR/slow.so" \
		"$ktask" bench populate --pages huge --threads 1,2 \
		--max-time 600 --json
	# The warm-up ends with 512 MiB.
	is_true '.size_bytes == 256 * 1048576'
	is_true '.memory_taken_back | .slow_touches == 0 and .repeated_runs == 0'
	is_true '.rows[1].runs == (.rows[1].samples | length)'
	is_true '.rows[0].runs >= .rows[1].runs'
}

# speed SECONDS...: a command that prints one after another
speed() {
	# Not $RANDOM, which two subshells may begin with the same seed.
	local state=$(mktemp "$BATS_TEST_TMPDIR/speed.XXXXXX")
	echo "read -r n <$state || n=0; echo \$((n + 1)) >$state; \
		set -- $*; shift \$n; echo \$1"
}

# compare RUNS A B: by the seconds that they print
compare() {
	"$ktask" bench --runs "$1" --own-time "${@:4}" compare "$2" "$3" \
		2>/dev/null
}

@test "what two commands print is compared round by round" {
	# The first round is not counted.  All times grow by 10 meanwhile, so
	# that medians of each side alone would say nothing.
	local a=$(speed 9 1 2 3 4 5 6 7 8 9 10)
	local b=$(speed 7 0.5 1 1.5 2 2.5 3 3.5 4 4.5 5)
	run -0 compare 10 "$a" "$b" --json --names one,other
	is_true '.benchmark == "compare" and .settled == true'
	is_true '.rows[1] | .speedup == 2 and .agreed == true
		and .interval.low == 2 and .interval.high == 2
		and .interval.confidence > 0.97 and .name == "other"'
	is_true '.rows[0] | .name == "one" and .seconds.least == 1'
}

@test "times that differ a hundredfold fit as well" {
	local a=$(speed 1 100 1 100 1) b=$(speed 1 1 100 1 100)
	run -0 compare 4 "$a" "$b" --names \
		"a name that is as long as a name may be,another"
	echo "$output"
	[[ $output == *"(0.01 to 100.00)"* ]]
	! sed 2d <<<"$output" | grep -E '.{81}' || false
}

@test "no speedup is printed where the rounds disagree" {
	# By medians the second one is 1.5 times as fast.
	local a=$(speed 1 3 1 3 1 3 1 3 1 3)
	local b=$(speed 1 2 2 2 2 2 2 2 2 2)
	run -0 compare 9 "$a" "$b"
	echo "$output"
	[[ $output =~ -\ +0\.50\ to\ 1\.50 ]]
	! grep -q '1\.50x' <<<"$output" || false
	[[ $output == *"where the rounds disagree"* ]]
	[[ $output == *"Not settled: the interval is 67 % of the speedup wide (settled: 10 %)."* ]]
}

# The tenth round is the last one: then an hour is over.
measure_ten_rounds() {
	local late=$BATS_TEST_TMPDIR/late a b

	${CC:-cc} -shared -fPIC -o "$late.so" \
		"$BATS_TEST_DIRNAME/fixtures/late-clock.c" -ldl
	a=$(speed $1) b=$(speed $2)
	run -0 --separate-stderr env LC_ALL=C LD_PRELOAD="$late.so" \
		LATE_FILE="$late" "$ktask" bench --max-time 3600 --own-time \
		"${@:3}" compare "$a" "$b; [ \$n -lt 10 ] || : >'$late'"
	echo "$output"
}

@test "samples that scatter are called too noisy, with what was done about it" {
	measure_ten_rounds '9 2 4 2 4 2 4 2 4 2 4' '9 1 1 1 1 1 1 1 1 1 1' \
		--names old,new --chart
	grep -qE '^  new +2\.83x +2\.00 to 4\.00 +1\.00 +1\.00$' <<<"$output"
	[[ $output == *$'\n10 rounds in '* ]]
	[[ $output == *$'\nTOO NOISY: the interval is 71 % of the speedup wide (asked: 10 %).\nTrust the interval, not the speedup.\n'* ]]
	[[ $output =~ Other\ processes\ used\ [0-9.]+\ of\ [0-9]+\ CPUs\ meanwhile ]]
	[[ $output == *$'\nDone about the noise: each round ran every row, in changing order, and rounds\nwere repeated while there was time.  Better: an idle machine, --max-time 14400.\n'* ]]
	[[ $output != *Settled* ]]
}

@test "samples that nearly agree are called settled, and nothing is excused" {
	measure_ten_rounds '9 2 2 2 2 2 2 2 2 2 2' '9 1 1 1 1 1 1 1 1 1 1'
	grep -qE '2\.00x +2\.00 to 2\.00' <<<"$output"
	[[ $output == *$'\nSettled: the interval is 0 % of the speedup wide (asked: 10 %).\n'* ]]
	[[ $output != *NOISY* && $output != *"Done about the noise"* ]]
}

@test "outliers in a tenth of the rounds change nothing" {
	local a=$(speed 1 2 2 2 90 2 2 2 2 2 2)
	local b=$(speed 1 1 1 1 1 1 1 90 1 1 1)
	run -0 compare 10 "$a" "$b"
	[[ $output =~ 2\.00x\ +2\.00\ to\ 2\.00 ]]
	[[ $output == *"Settled: the interval is 0 % of the speedup wide (asked: 10 %)."* ]]
}

@test "the chart is text, and ASCII where the locale is" {
	local a=$(speed 1 2 2 2 2 2 2 4 2) b=$(speed 1 1 1 1 1 1 1 1 1)
	run -0 env LC_ALL=C "$ktask" bench --runs 8 --own-time --chart \
		--names old,new compare "$a" "$b"
	[[ $output == *"  old          |############# "*" 1.00x"* ]]
	[[ $output =~ "  new          |"#{25}-{25}\ 2\.00x ]]
	! LC_ALL=C grep -q '[^ -~]' <<<"$output" || false
	a=$(speed 1 2 2 2 2 2 2 4 2) b=$(speed 1 1 1 1 1 1 1 1 1)
	run -0 env LC_ALL=C.UTF-8 "$ktask" bench --runs 8 --own-time --chart \
		compare "$a" "$b"
	[[ $output == *█░* ]]
}

@test "no colour and no cursor, unless the progress bar is on a terminal" {
	run -0 python3 "$BATS_TEST_DIRNAME/fixtures/terminal.py" '' sh -c \
		'"$@" 2>/dev/null' sh "$ktask" bench --runs 1 --size 1M --chart \
		populate
	[[ $output != *"\\x1b"* ]]
}

@test "a command that fails, or prints no seconds, is told" {
	says_last() {
		run -1 --separate-stderr "${@:2}"
		[ "$stderr" = "ktask: bench: $1" ]
	}
	says_last "false: exit status 1" "$ktask" bench compare false true
	says_last "kill -9 \$\$: ended by signal 9" \
		"$ktask" bench compare 'kill -9 $$' true
	says_last "true: printed no seconds as its last line" \
		"$ktask" bench --own-time compare true true
	says_last "echo 0: printed no seconds as its last line" \
		"$ktask" bench --own-time compare 'echo 0' true
}

@test "commands see no input, and their output is not shown" {
	run -0 "$ktask" bench --runs 1 compare 'read x || echo secret' 'cat'
	[[ $output != *secret$'\n'* ]]
	run -0 "$ktask" bench --runs 6 --own-time compare \
		'yes long | head -5000; echo 2' 'echo 1'
	[[ $output == *2.00x* ]]
}

@test "an interrupt ends the command that is measured" {
	cd "$BATS_TEST_TMPDIR"
	env --default-signal=INT "$ktask" bench compare \
		'echo $$ >pid; exec sleep 300' true >out 2>err 3>&- &
	local pid=$! status=0
	for _ in {1..600}; do
		[ -s pid ] && break
		sleep 0.1
	done
	kill -INT $pid
	wait $pid || status=$?
	[ "$status" -eq 130 ]
	grep -qx 'ktask: bench: interrupted after 0 runs' err
	! kill -0 "$(cat pid)" || false
}

@test "without /proc no load is claimed" {
	unshare --mount mount -t tmpfs none /proc || skip "no mount of one's own"
	run -0 unshare --mount sh -c "mount -t tmpfs none /proc &&
		exec $ktask bench populate --size 4M --runs 1 --threads 1"
	echo "$output"
	[[ $output == *"is not known: /proc/stat cannot be read."* ]]
	[[ $output != *"Other processes used"* ]]
	run -0 unshare --mount sh -c "mount -t tmpfs none /proc && exec \
		$ktask bench populate --size 4M --runs 1 --threads 1 --json"
	is_true '.others_cpus == null and .stolen_cpus == null'
}

@test "several runs have a deviation, and all are counted" {
	run -0 "$ktask" bench --runs 3 --size 64M --threads 1 --json populate
	is_true '.rows | length == 1 and .[0].runs == 3'
	is_true '.rows[0].seconds.stddev_pct > 0'
}

@test "thread lists are put in order, each count once" {
	run -0 "$ktask" bench --runs 1 --size 1M --threads 3,1-2,2 --json fill
	is_true '[.rows[].threads] == [1, 2, 3]'
}

@test "more threads than the machine has are marked" {
	run -0 "$ktask" bench --runs 1 --size 64M --threads 1,4096 populate
	[[ $output == *4096\** ]]
	[[ $output == *"* fewer threads than that worked"* ]]
}

@test "--json=FILE writes the object beside the table" {
	run -0 bench --json="$BATS_TEST_TMPDIR/out.json" populate
	[[ ${lines[0]} == "populate: "* ]]
	output=$(<"$BATS_TEST_TMPDIR/out.json")
	check_object populate
}

@test "a size that is not whole pages is rounded up to them" {
	run -0 "$ktask" bench --runs 1 --size 1048577 --threads 1 --json fill
	is_true '.size_bytes == 1048576 + '"$(getconf PAGESIZE)"
}

@test "more memory than there is is refused before anything is mapped" {
	says 1 "mapping 4 PiB: only" "$ktask" bench --size 4096T populate
	says 1 "of memory are available" "$ktask" populate --anon 4096T
}

@test "the plot is SVG or PNG by its name" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	run -0 bench --plot "$BATS_TEST_TMPDIR/it's a \$plot.svg" populate
	[[ ${lines[-1]} == "plot: $BATS_TEST_TMPDIR/it's a \$plot.svg" ]]
	grep -q '<svg' "$BATS_TEST_TMPDIR/it's a \$plot.svg"
	grep -q 'populate: ' "$BATS_TEST_TMPDIR/it's a \$plot.svg"
	run -0 bench --plot "$BATS_TEST_TMPDIR/plot.png" populate
	[ "$(head -c 4 "$BATS_TEST_TMPDIR/plot.png" | tail -c 3)" = PNG ]
}

@test "a plot is made also for who ignores what children end with" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	deaf=(perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV')
	run -0 "${deaf[@]}" "$ktask" bench --runs 1 --size 64M \
		--threads 1 --plot "$BATS_TEST_TMPDIR/plot.svg" populate
	grep -q '<svg' "$BATS_TEST_TMPDIR/plot.svg"
}

@test "a plot is made also for who closed all that is open" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	run -1 sh -c '"$@" <&- >&- 2>&-' sh "$ktask" bench --runs 1 \
		--size 64M --threads 1 --plot "$BATS_TEST_TMPDIR/plot.svg" \
		--json="$BATS_TEST_TMPDIR/rows.json" populate
	grep -q '</svg>' "$BATS_TEST_TMPDIR/plot.svg"
	jq -e '.rows | length == 1' "$BATS_TEST_TMPDIR/rows.json"
}

@test "who ignores broken pipes is told of one, also after a plot" {
	command -v gnuplot >/dev/null || skip "no gnuplot"
	mkfifo "$BATS_TEST_TMPDIR/pipe"
	# A pipe without a reader.
	exec 8<>"$BATS_TEST_TMPDIR/pipe" 9>"$BATS_TEST_TMPDIR/pipe" 8<&-
	run -1 sh -c 'trap "" PIPE; exec "$@" >&9' sh "$ktask" bench --runs 1 \
		--size 64M --threads 1 --plot "$BATS_TEST_TMPDIR/plot.svg" \
		populate
	exec 9>&-
	[[ $output == *"writing the output: Broken pipe" ]]
}

@test "a target that cannot be written is told before measuring" {
	# Measuring would not end within this test.
	bench_long() {
		timeout 300 "$ktask" bench --runs 4096 --size 64M "$@"
	}
	says 1 "plotting to /nosuch/plot.svg: No such file or directory" \
		bench_long --plot /nosuch/plot.svg populate
	says 1 "writing /nosuch/out.json: No such file or directory" \
		bench_long --json=/nosuch/out.json populate
	says 1 "writing $BATS_TEST_TMPDIR: Is a directory" \
		bench_long --json="$BATS_TEST_TMPDIR" populate
	says 2 "--json '': the name of a file is missing" \
		bench_long --json= populate
	says 1 "gnuplot is not installed" env PATH=/nosuch "$(command -v timeout)" \
		300 "$ktask" bench --runs 4096 --size 64M \
		--plot "$BATS_TEST_TMPDIR/plot.svg" populate
	[ ! -e "$BATS_TEST_TMPDIR/plot.svg" ]
}

@test "verifying the targets changes nothing" {
	cd "$BATS_TEST_TMPDIR"
	echo former >kept.json
	run -1 bench --json=kept.json --plot /nosuch/plot.svg populate
	[ "$(cat kept.json)" = former ]
	run -1 bench --json=new.json --plot /nosuch/plot.svg populate
	[ ! -e new.json ]
	[ "$(ls -A)" = kept.json ]
}

# interrupted_after SECONDS: whether a row was finished by then
interrupted_after() {
	local pid status=0

	# A shell starts what runs in the background with SIGINT ignored.
	env --default-signal=INT "$ktask" bench --runs 4096 --size 16M \
		--threads 1 populate \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" &
	pid=$!
	sleep "$1"
	kill -INT $pid
	wait $pid || status=$?
	cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err"
	[ "$status" -eq 130 ] || return 2
	grep -qE '^ +1 +1\.00x' "$BATS_TEST_TMPDIR/out"
}

@test "an interrupt prints the rows that are finished" {
	# A busy machine may need longer for its first row.
	interrupted_after 1 || interrupted_after 4 || interrupted_after 30
	grep -qE '^ktask: bench: interrupted after [0-9]+ of 4097 runs$' \
		"$BATS_TEST_TMPDIR/err"
}

# Measuring, or when it is over and nobody reads what was measured.
ends_by_term() {
	local pid status=0

	"$ktask" bench "$@" --size 16M --threads 1 --json=fifo populate \
		>out 2>err 3>&- &
	pid=$!
	sleep 1
	kill -TERM $pid
	# The shell may have asked already how it ended; then it is no zombie.
	for ((i = 0; i < 600; i++)); do
		[[ $(cat /proc/$pid/stat 2>/dev/null) == *") "[!Z]" "* ]] || break
		sleep 0.1
	done
	[ $i -lt 600 ] || kill -KILL $pid
	wait $pid || status=$?
	cat out err
	[ "$status" -eq 143 ]
}

@test "one signal ends it, whoever reads its JSON or not" {
	cd "$BATS_TEST_TMPDIR"
	mkfifo fifo
	ends_by_term --runs 1
	ends_by_term --runs 4096
}

@test "a FIFO gets the JSON" {
	cd "$BATS_TEST_TMPDIR"
	mkfifo fifo
	cat fifo >got 3>&- &
	run -0 "$ktask" bench --runs 1 --size 16M --threads 1 --json=fifo \
		populate
	wait
	output=$(cat got)
	is_true '.benchmark == "populate"'
}
