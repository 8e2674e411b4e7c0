#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What the report says of memory that was made ahead, beside what the program really stored.

load shim.bash

unset KTASK_RUN_MIN
# Other tests run beside these.
export KTASK_OVERLOAD=ignore

# mib WORDS BEHIND: the number of MiB in front of BEHIND and behind WORDS, in the last report
mib() {
	grep '^ktask: ahead: ' "$REPORT" | tail -1 |
		sed -n "s/.*$1 \([0-9.]*\) \([KMG]iB\|bytes\) $2.*/\1 \2/p" |
		awk '{ print int($2 == "MiB" ? $1 : $2 == "GiB" ? $1 * 1024 : 0) }'
}

# Pages of the program's own, and what is not whole MiB.
TOLERANCE=4

@test "no less is untouched than it says, and no less touched in order" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for shape in whole many part stop; do
		for mode in ahead-small ahead; do
			: >"$REPORT"
			KTASK_RUN_OPS=$mode run shimmed "$PROGRAMS/account-cases" $shape
			read -r stored unused <<<"$output"
			echo "$shape $mode: stored $stored MiB, $unused MiB unused"
			cat "$REPORT"
			[ "$status" -eq 0 ]
			[ "$(mib ',[a-z ]*' 'touched in order')" -le \
				$((stored + TOLERANCE)) ]
			made || continue
			grep -q ', at least .* touched in order, .*, at most .* untouched' \
				"$REPORT"
			[ "$(mib 'saved,[a-z ]*' untouched)" -ge \
				$((unused - TOLERANCE)) ]
		done
	done
}

@test "a forecast allows as much as helpers may make in vain" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for _ in {1..5}; do
		: >"$REPORT"
		KTASK_RUN_OPS=dry,ahead run shimmed "$PROGRAMS/account-cases" stop
		cat "$REPORT"
		untouched=$(mib 'saved,[a-z ]*' untouched)
		[ -z "$untouched" ] || break
	done
	[ -n "$untouched" ] || skip "the watcher got no CPU"
	# 1/64 of the mapping, and 3 %.
	[ "$untouched" -ge 64 ]
	[ "$untouched" -le 68 ]
}

@test "what was watched is told before a process becomes another program" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for mode in ahead dry,ahead; do
		: >"$REPORT"
		KTASK_RUN_OPS=$mode run shimmed "$PROGRAMS/account-cases" whole /bin/true
		cat "$REPORT"
		[ "$status" -eq 0 ]
		grep -q '^ktask: run: .*then it called exec' "$REPORT"
		[ "$(grep -c '^ktask: ahead: 1 mapping of 256.0 MiB' "$REPORT")" = 1 ]
	done
}

@test "nothing of it is told twice where exec fails" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	printf '\177ELF broken' >"$BATS_TEST_TMPDIR/broken"
	chmod +x "$BATS_TEST_TMPDIR/broken"
	for program in /nonexistent "$BATS_TEST_TMPDIR/broken"; do
		: >"$REPORT"
		KTASK_RUN_OPS=ahead run shimmed "$PROGRAMS/account-cases" whole $program
		cat "$REPORT"
		[ "$status" -eq 0 ]
		sed -n 's/.*, [a-z ]*\([0-9]*\)\.[0-9]* MiB touched in order.*/\1/p' \
			"$REPORT" >"$BATS_TEST_TMPDIR/touched"
		[ "$(awk '{ all += $1 } END { print all + 0 }' \
			"$BATS_TEST_TMPDIR/touched")" -le 256 ]
	done
}

@test "a report names /proc where it could not be read" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	REPORT=1 KTASK_RUN_OPS=ahead run shimmed "$PROGRAMS/account-cases" nofile
	echo "$output"
	[[ $output == *"nothing is made ahead where /proc cannot be read"* ]]
	[[ $output != *"memory is left"* ]]
}

# On a machine that says that many more threads run than there are CPUs.
@test "it says that no helper got a CPU" {
	[ "$(id -u)" = 0 ] || skip "not root"
	unshare -m true || skip "no mount namespaces"
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	echo '9.00 9.00 9.00 99/400 1' >"$BATS_TEST_TMPDIR/loadavg"
	for one in fills fills-two; do
		for _ in {1..5}; do
			: >"$REPORT"
			KTASK_OVERLOAD= KTASK_RUN_OPS=ahead-small run shimmed \
				unshare -m bash -c "mount --bind \
					'$BATS_TEST_TMPDIR/loadavg' /proc/loadavg &&
					exec \"\$@\"" bash "$PROGRAMS/ahead-bad-days" $one
			echo "$output"
			cat "$REPORT"
			[ "$status" -eq 0 ]
			[ "$output" = ok ]
			! made || false
			! grep -q 'no helper got a CPU (' "$REPORT" || break
		done
		case $one in
		fills) why='1 mapping of .*, nothing made ahead; the reason' ;;
		*) why='2 mappings of .*, nothing made ahead; nothing in [12] of 2 mappings' ;;
		esac
		grep -q "^ktask: ahead: $why: no helper got a CPU (" "$REPORT"
	done
}

@test "it says that too little memory is left" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	# The mapping has 96 MiB, and 192 MiB are taken once it is watched.
	make_group 308
	for mode in ahead-small ahead; do
		for _ in {1..5}; do
			: >"$REPORT"
			run bash -c "echo \$\$ >$group/cgroup.procs && exec \"\$@\"" \
				bash env LD_PRELOAD="$SHIM" KTASK_RUN_OPS=$mode \
				KTASK_RUN_REPORT="$REPORT" timeout 300 \
				"$PROGRAMS/ahead-bad-days" fills-late
			echo "$mode: $status $output"
			cat "$REPORT"
			[ "$status" -eq 0 ] && [ "$output" = ok ] || break
			! grep -q 'memory is left (' "$REPORT" || break
		done
		[ "$status" -eq 0 ] && [ "$output" = ok ] || break
		grep -q ', nothing made ahead; the reason: too little memory is left (' \
			"$REPORT" || { status=1 && break; }
	done
	remove_group "$group"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
}
