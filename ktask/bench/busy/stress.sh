#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# stress.sh BUILD SECONDS MIB...: what bench-busy says of jobs of each size, beside
# three busy processes for each CPU: of nice 0, of nice 19, idle ones, and as root of
# nice -20.  Rounds begin for SECONDS each, and eight at least: beside nice -20 a job of
# 64 MiB takes seconds, a round half a minute.  The end says which did not keep to the
# bound; then the exit status is 1.
#
# Jobs of a few milliseconds do not belong here: whoever is preempted once more loses
# a turn of all others, which is many times the job.

set -u

build=${1:?usage: stress.sh BUILD SECONDS MIB...}
seconds=${2:?}
shift 2
others=$((3 * $(nproc)))
[ "$others" -le 64 ] || others=64
# Most rounds that one run may have.
rounds=1001
least=8
# Each of them may need long: as long as a job without helpers, three times.
patience=$((seconds + least * 300))
loads=(0 19 idle)
[ "$(id -u)" != 0 ] || loads+=(-20)

broken=()
for load in "${loads[@]}"; do
	for mib in "$@"; do
		timeout --kill-after=5 "$patience" "$build/bench/bench-busy" \
			"$others" "$load" "$rounds" "$mib" "$seconds" \
			"$least" ||
			broken+=("$mib MiB beside $load (status $?)")
		echo
	done
done
[ "$(id -u)" = 0 ] || echo 'Nice -20: not tried, as only root may.'
if [ "${#broken[@]}" = 0 ]; then
	echo 'Every job kept to 1.05 of plain and one chunk.'
	exit
fi
printf 'Not kept: %s\n' "${broken[@]}"
exit 1
