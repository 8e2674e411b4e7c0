#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The main job: start a guest with much memory.  First the two calls that take
# the time, populate and lock, with 1 to N threads; then a real QEMU, plain
# and through `ktask run`, until it answers on its monitor.
#
# QEMU is started as for a guest whose memory must not move: preallocated and
# locked.  Its CPUs are held (-S) and emulated, so that no right to /dev/kvm is
# needed and nothing but the start is timed.  QEMU 7.2 populates with a single
# madvise(MADV_POPULATE_WRITE) on its main thread (prealloc-threads defaults to
# 1) and then calls mlockall().  The emulator's code buffer is set to 32 MiB,
# because mlockall() would make its default of 1 GiB present as well.
#
# Behaves badly on a busy machine: it has no more than medians against that.

set -u -o pipefail
# $EPOCHREALTIME and awk shall agree on the decimal point.
export LC_ALL=C.UTF-8

build=${1:?usage: demo.sh BUILD [RUNS [SIZE]]}
runs=${2:-5}
size=${3:-}
ktask=$build/ktask
log=$build/demo-run.log
answer_timeout_s=600

fail() {
	echo "ktask: demo: $*" >&2
	exit 1
}

# Prints the command as one could type it, then runs it.
show() {
	printf '$ %s\n\n' "$*"
	"$@"
}

# bench OPERATION [OPTION...]: the table, the plot, and the size in $build
bench() {
	show "$ktask" bench "$@" ${size:+--size "$size"} \
		--runs "$runs" --json="$build/demo.json" \
		--plot "$build/demo.svg"
}

qemu_pid=
stop_qemu() {
	[ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null
}
trap stop_qemu EXIT
trap 'exit 130' INT TERM
# A QEMU that dies at once shall not take this script with it; unlike '', this
# is not inherited.
trap : PIPE

# Reads QEMU's lines until it has answered our command; it does that only once
# the machine is made.
await_answer() {
	local line said=

	while IFS= read -r -t "$answer_timeout_s" line <&"${qemu[0]}"; do
		case $line in
		*'"return"'*) return 0 ;;
		*'"QMP"'*) ;;
		*) said=$line ;;
		esac
	done
	fail "starting QEMU: ${said:-it ended, or did not answer}"
}

# start_guest COMMAND...: sets $seconds to the time from exec to the answer
start_guest() {
	local begin end

	# What the host of a virtual machine took back is fetched here, untimed.
	"$ktask" populate --anon "${mib}M" >/dev/null
	begin=$EPOCHREALTIME
	coproc qemu { exec "$@" 2>&1; }
	qemu_pid=$qemu_PID
	echo '{"execute":"qmp_capabilities"}' >&"${qemu[1]}"
	await_answer
	end=$EPOCHREALTIME
	echo '{"execute":"quit"}' >&"${qemu[1]}"
	wait "$qemu_pid" || fail "starting QEMU: it ended with status $?"
	qemu_pid=
	seconds=$(awk -v a="$begin" -v b="$end" 'BEGIN { printf "%.6f", b - a }')
}

# compare PLAIN SHIMMED: two lists of seconds, as rows of a table
compare() {
	awk -v a="$1" -v b="$2" '
	function stats(text,   n, i, j, t, x, sum, squares) {
		n = split(text, x)
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && x[j - 1] + 0 > x[j] + 0; j--) {
				t = x[j]; x[j] = x[j - 1]; x[j - 1] = t
			}
		median = (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2
		for (i = 1; i <= n; i++)
			sum += x[i]
		mean = sum / n
		for (i = 1; i <= n; i++)
			squares += (x[i] - mean) ^ 2
		# one run has no deviation
		percent = n > 1 ? sprintf("%.1f",
			100 * sqrt(squares / (n - 1)) / mean) : "-"
	}
	function row(name) {
		printf "  %-32s %6.2fx %12.3f (±%5s)\n", name,
			first / median, mean, percent
	}
	BEGIN {
		printf "  %-32s speedup  average sec (± %%)\n", ""
		stats(a); first = median
		row("qemu-system-x86_64")
		stats(b)
		row("ktask run -- qemu-system-x86_64")
		print "\nspeedup: by medians"
	}'
}

# Alternates the two, so that drift of the machine hits both alike, and
# begins each round with the other one; the first round is not counted.
time_guests() {
	local plain= shimmed= seconds round turn

	rm -f "$log"
	for ((round = 0; round <= runs; round++)); do
		for turn in $((round % 2)) $(((round + 1) % 2)); do
			if [ "$turn" = 0 ]; then
				start_guest "$@"
				((round == 0)) || plain+="$seconds "
			else
				start_guest "$ktask" run --report="$log" -- "$@"
				((round == 0)) || shimmed+="$seconds "
			fi
		done
	done
	compare "$plain" "$shimmed"
}

lock=(-overcommit mem-lock=on)
how='preallocated and locked'
bench vm-start
status=$?
if [ "$status" -gt 1 ]; then
	exit "$status"
elif [ "$status" = 1 ]; then
	printf '\n%s\n\n' 'Going on without locking; run as root to lock.'
	lock=()
	how=preallocated
	bench populate --pages huge || exit
fi

bytes=$(sed -n 's/^ *"size_bytes": \([0-9]*\).*/\1/p' "$build/demo.json")
mib=$((bytes >> 20))
guest=(qemu-system-x86_64 -nodefaults -display none -S
	-accel tcg,tb-size=32 -machine pc,memory-backend=ram -m "${mib}M"
	-object "memory-backend-ram,id=ram,size=${mib}M,prealloc=on"
	"${lock[@]}" -qmp stdio)

printf '\n$ %s\n\n' "${guest[*]}"
echo "Start of QEMU with $mib MiB $how, until it answers (runs of each: $runs)"
echo
time_guests "${guest[@]}"
[ -s "$log" ] || fail 'starting QEMU: the shim took nothing over'
# A line for each call that was taken over; they end with ", PID)".
last=$(tail -n 1 "$log")
echo 'of the last start:'
grep -F ", ${last##*, }" "$log" | sed 's/^/  /'
