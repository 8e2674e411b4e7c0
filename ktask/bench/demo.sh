#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The main job: start a guest with much memory.  First the two calls that take
# the time, populate and lock, with 1 to N threads; then a real QEMU, plain
# and through `ktask run`, until it answers on its monitor.  `ktask bench` runs
# both and judges them: pairs, intervals, noise, time limits are its business.
#
# QEMU is started as for a guest whose memory must not move: preallocated and
# locked.  Its CPUs are held (-S) and emulated, so that no right to /dev/kvm is
# needed and nothing but the start is timed.  QEMU 7.2 populates with a single
# madvise(MADV_POPULATE_WRITE) on its main thread (prealloc-threads defaults to
# 1) and then calls mlockall().  The emulator's code buffer is set to 32 MiB,
# because mlockall() would make its default of 1 GiB present as well.

set -u -o pipefail
# $EPOCHREALTIME shall have a decimal point whatever the user's locale says.
export LC_NUMERIC=C
unset LC_ALL

answer_timeout_s=120
part_s=28

fail() {
	echo "ktask: demo: $*" >&2
	exit 1
}

# Prints the command as one could type it, then runs it.
show() {
	printf '$ %s\n\n' "$*"
	"$@"
}

qemu_pid=
stop_qemu() {
	[ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null
}

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

# start_guest COMMAND...: prints the seconds from exec to the answer
start_guest() {
	local begin end

	trap stop_qemu EXIT
	trap 'exit 130' INT TERM
	# A QEMU that dies at once shall not take this script with it; unlike
	# '', this is not inherited.
	trap : PIPE
	begin=${EPOCHREALTIME/./}
	coproc qemu { exec "$@" 2>&1; }
	qemu_pid=$qemu_PID
	echo '{"execute":"qmp_capabilities"}' >&"${qemu[1]}"
	await_answer
	end=${EPOCHREALTIME/./}
	echo '{"execute":"quit"}' >&"${qemu[1]}"
	wait "$qemu_pid" || fail "starting QEMU: it ended with status $?"
	qemu_pid=
	printf '%d.%06d\n' $(((end - begin) / 1000000)) \
		$(((end - begin) % 1000000))
}

# What `ktask bench` runs below.
if [ "${1:-}" = --start ]; then
	shift
	start_guest "$@"
	exit
fi

build=${1:?usage: demo.sh BUILD [RUNS [SIZE]]}
runs=${2:-}
size=${3:-}
ktask=$build/ktask
log=$build/demo-run.log
limits=(--max-time "$part_s")
[ -z "$runs" ] || limits=(--runs "$runs")

# bench OPERATION [OPTION...]: the table, the chart, and the size in $build
bench() {
	show "$ktask" bench "$@" ${size:+--size "$size"} "${limits[@]}" \
		--chart --plot "$build/demo.svg" --json="$build/demo.json"
}

# compare_guests QEMU...: plain, and through ktask run
compare_guests() {
	local start

	rm -f "$log"
	printf -v start '%q ' "$0" --start
	"$ktask" bench compare --own-time --size "${mib}M" "${limits[@]}" \
		--names "$1,ktask run -- $1" --json="$build/demo-qemu.json" \
		--chart "$start $(printf '%q ' "$@")" \
		"$start $(printf '%q ' "$ktask" run --report="$log" -- "$@")"
}

[ -n "$runs" ] || echo "This takes about $((2 * part_s)) seconds."
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
echo "Start of QEMU with $mib MiB $how, until it answers"
echo
compare_guests "${guest[@]}" || exit
grep -q '^ktask: run: took over [^n]' "$log" ||
	fail 'starting QEMU: the shim took nothing over'
# Lines on what was taken over; they end with ", PID)".
last=$(tail -n 1 "$log")
printf '\n%s\n' 'What ktask run took over in the last start:'
grep -F ", ${last##*, }" "$log" | sed 's/^/  /'
