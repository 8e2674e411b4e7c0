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
	is_true '.others_cpus >= 0'
	is_true '[.rows[].threads] == [1, 2]'
	is_true '.rows[0].speedup == 1'
	is_true 'all(.rows[]; .seconds.median > 0 and .seconds.mean > 0
		and .seconds.stddev_pct == 0 and .speedup > 0
		and .cpu_seconds > 0 and .runs == 1
		and .threads_used >= 1 and .threads_used <= .threads)'
	# The figures belong together: GB/s and speedup come from the medians.
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
	[[ ${lines[0]} == "populate: "* ]]
	[[ ${lines[1]} == "64 MiB, 1 run each; "* ]]
	[[ ${lines[2]} == \
		"  thr  speedup  average sec (± %)         GB/s   cpu sec" ]]
	[[ ${lines[3]} =~ ^\ +1\ +1\.00x\ +0\.[0-9]+\ +\(±\ +-\)\ +[0-9.]+\ +[0-9.]+$ ]]
	[[ ${lines[4]} =~ ^\ +2[\ *]\ +[0-9]+\.[0-9]+x\ +0\.[0-9]+\ +\(±\ +-\)\ +[0-9.]+\ +[0-9.]+$ ]]
	[[ ${lines[5]} == "speedup and GB/s: by medians;"* ]]
	[[ ${lines[6]} =~ ^other\ processes\ kept\ [0-9.]+\ CPUs\ busy ]]
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

@test "a plot that cannot be made is told, after the table" {
	run -1 --separate-stderr bench --plot /nosuch/plot.svg populate
	[[ ${lines[0]} == "populate: "* ]]
	[ "$stderr" = \
		"ktask: plotting to /nosuch/plot.svg: No such file or directory" ]
	run -1 --separate-stderr env PATH=/nosuch "$ktask" bench --runs 1 \
		--size 64M --threads 1 --plot "$BATS_TEST_TMPDIR/plot.svg" \
		populate
	[[ $stderr == *"gnuplot is not installed" ]]
	[ ! -e "$BATS_TEST_TMPDIR/plot.svg" ]
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
	interrupted_after 1 || interrupted_after 4 || interrupted_after 8
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
	for ((i = 0; i < 300; i++)); do
		[[ $(cat /proc/$pid/stat 2>/dev/null) == *") "[!Z]" "* ]] || break
		sleep 0.1
	done
	[ $i -lt 300 ] || kill -KILL $pid
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
