#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Start of a guest with its memory preallocated, until QEMU answers: by its own
# single thread, by that under `ktask run`, and by two threads of its own.
#
#	ktask/bench/shim/qemu.sh BUILD [ROUNDS [MIB]]
#
# The three take turns, each round begins with another; what the host of this
# machine took back is fetched before each start, untimed.  Prints all times,
# medians and ratios.  Fetched is three times what the guest has, where there is
# as much: the kernel need not give out what was fetched last.

set -u -o pipefail
export LC_ALL=C.UTF-8

build=${1:?usage: qemu.sh BUILD [ROUNDS [MIB]]}
rounds=${2:-5}
mib=${3:-8192}

fetched=$(awk -v most=$((3 * mib)) '/^MemAvailable:/ {
	mib = int($2 / 1024 * 0.85); print mib < most ? mib : most }' /proc/meminfo)

fail() {
	echo "ktask: bench: $*" >&2
	exit 1
}

# start THREADS COMMAND...: prints the seconds from exec to the answer
start() {
	local threads=$1 begin end line
	shift
	"$build/ktask" populate --anon "${fetched}M" >/dev/null
	begin=$EPOCHREALTIME
	coproc qemu { exec "$@" qemu-system-x86_64 -nodefaults -display none -S \
		-accel tcg,tb-size=32 -machine pc,memory-backend=ram -m "${mib}M" \
		-object "memory-backend-ram,id=ram,size=${mib}M,prealloc=on,prealloc-threads=$threads" \
		-qmp stdio 2>&1; }
	local pid=$qemu_PID in=${qemu[1]} out=${qemu[0]}
	echo '{"execute":"qmp_capabilities"}' >&"$in"
	while read -r -t 300 line <&"$out"; do
		[[ $line != *'"return"'* ]] || break
	done
	end=$EPOCHREALTIME
	[[ ${line-} == *'"return"'* ]] || fail "QEMU did not answer: ${line-}"
	echo '{"execute":"quit"}' >&"$in"
	wait "$pid" || fail "QEMU ended with status $?"
	awk -v a="$begin" -v b="$end" 'BEGIN { printf "%.4f\n", b - a }'
}

median() {
	sort -n | awk '{ x[NR] = $1 } END {
		print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'
}

names=('one thread' 'ktask run' 'two threads')
times=('' '' '')
for ((round = 0; round < rounds; round++)); do
	for ((turn = 0; turn < 3; turn++)); do
		case $(((round + turn) % 3)) in
		0) s=$(start 1 env) && times[0]+="$s " ;;
		1) s=$(start 1 "$build/ktask" run --) && times[1]+="$s " ;;
		2) s=$(start 2 env) && times[2]+="$s " ;;
		esac || exit 1
	done
done
for i in 0 1 2; do
	medians[i]=$(tr ' ' '\n' <<<"${times[i]% }" | median)
	printf '%-12s median %s s: %s\n' "${names[i]}" "${medians[i]}" "${times[i]}"
done
awk -v a="${medians[0]}" -v b="${medians[1]}" -v c="${medians[2]}" \
	'BEGIN { printf "ktask run: %.2fx of one thread, %.2fx of two\n", a / b, c / b }'
