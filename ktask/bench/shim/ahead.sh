#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Programs that touch their memory, plain and under `ktask run`: the seconds that
# touching takes, and the memory that they had.  "present" touches memory that is there
# already: the ceiling.
#
#	ktask/bench/shim/ahead.sh BUILD [ROUNDS [MIB]]
#
# The ways of running take turns, each round begins with another; what the host of
# this machine took back is fetched before each run, untimed.  Prints medians, the
# median of the ratios of each round to the plain program, and the load.

set -u -o pipefail
export LC_ALL=C.UTF-8

build=${1:?usage: ahead.sh BUILD [ROUNDS [MIB]]}
rounds=${2:-5}
mib=${3:-2048}
program=$build/bench/touch-memory
ways=(memset compute page two random)
modes=(plain small on tunable present present-huge)

fail() {
	echo "ktask: bench: $*" >&2
	exit 1
}

# run MODE WAY: seconds and MiB
run() {
	"$build/ktask" populate --anon "$((2 * mib))M" >/dev/null
	case $1 in
	plain) "$program" "$mib" "$2" ;;
	present) "$program" "$mib" "$2" again ;;
	present-huge)
		GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "$program" "$mib" "$2" again
		;;
	tunable) GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "$program" "$mib" "$2" ;;
	*) "$build/ktask" run --ahead="$1" -- "$program" "$mib" "$2" ;;
	esac || fail "$1 $2 ended with status $?"
}

median() {
	sort -g | awk '{ x[NR] = $1 } END {
		printf "%.3f\n", (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'
}

results=$(mktemp -d) || fail "no temporary directory"
trap 'rm -rf "$results"' EXIT

lscpu | sed -n 's/^Model name: */machine: /p' | head -1
echo "$(nproc) CPUs, Linux $(uname -r), $mib MiB, $rounds rounds," \
	"huge pages: $(cat /sys/kernel/mm/transparent_hugepage/enabled)"
echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
for way in "${ways[@]}"; do
	for ((round = 0; round < rounds; round++)); do
		for ((turn = 0; turn < ${#modes[@]}; turn++)); do
			mode=${modes[(round + turn) % ${#modes[@]}]}
			run "$mode" "$way" >>"$results/$way-$mode" || exit 1
		done
	done
done
printf '%-8s %-12s %9s %7s %9s\n' touch mode seconds ratio MiB
for way in "${ways[@]}"; do
	for mode in "${modes[@]}"; do
		printf '%-8s %-12s %9s %7s %9s\n' "$way" "$mode" \
			"$(cut -d ' ' -f 1 "$results/$way-$mode" | median)" \
			"$(paste -d ' ' "$results/$way-plain" "$results/$way-$mode" |
				awk '{ print $1 / $3 }' | median)" \
			"$(cut -d ' ' -f 2 "$results/$way-$mode" | median)"
	done
done
echo "load behind: $(cut -d ' ' -f 1-3 /proc/loadavg)"
