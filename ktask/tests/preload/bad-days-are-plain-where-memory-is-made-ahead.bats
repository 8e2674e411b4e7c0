#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Little memory, filters of system calls, many processes at once and pages of other kinds do
# to a program whose memory is made ahead of its touches what they would do without that.

load shim.bash

unset KTASK_RUN_MIN
# Other tests run beside these.
export KTASK_OVERLOAD=ignore

MIB=$((1 << 20))
# The watcher's and a helper's own stacks, in the kernel too, where there is room for them.
THREADS_BYTES=$MIB
# What the shim's own data take, whatever it does, and what it needs of the stack to
# find out that memory is short.
SHIM_BYTES=$((256 << 10))
SHIM_STACK_PAGES=4
# Bytes more than a program needs: from a page on about twice as many each time, and closer
# where windows begin to be made, with 32 MiB left besides what may be touched.
MORE=(4096 16384 65536 262144 $((1 * MIB)) $((2 * MIB)) $((4 * MIB)) $((8 * MIB))
	$((16 * MIB)) $((24 * MIB)) $((30 * MIB)) $((31 * MIB)) $((32 * MIB))
	$((33 * MIB)) $((34 * MIB)) $((36 * MIB)) $((40 * MIB)) $((48 * MIB))
	$((64 * MIB)) $((96 * MIB)) $((128 * MIB)))

# In a group of control groups of one version or the other.
limit_group() {
	local limit=$group/memory.limit_in_bytes

	[ -e "$limit" ] || limit=$group/memory.max
	echo "$1" >"$limit"
}

peak_of_group() {
	cat "$group/memory.max_usage_in_bytes" 2>/dev/null ||
		cat "$group/memory.peak"
}

# in_group HOW CASE...: as it ended, "plain" or with the shim in that mode
in_group() {
	local how=$1 status=0

	shift
	: >"$REPORT"
	(
		echo "$BASHPID" >"$group/cgroup.procs"
		[ "$how" != plain ] ||
			exec env -u LD_PRELOAD timeout 300 \
				"$PROGRAMS/ahead-bad-days" "$@"
		export LD_PRELOAD="$SHIM" KTASK_RUN_REPORT="$REPORT"
		KTASK_RUN_OPS=$how exec timeout 300 \
			"$PROGRAMS/ahead-bad-days" "$@"
	) >"$BATS_TEST_TMPDIR/said" 2>&1 || status=$?
	echo "$how $*: $status $(cat "$BATS_TEST_TMPDIR/said" "$REPORT" |
		head -20)"
	ended=$status:$(cat "$BATS_TEST_TMPDIR/said")
}

# What the plain program needs, in bytes, of which several runs need the most.
measure_need() {
	need=0
	for _ in 1 2 3; do
		make_group 1024
		in_group plain "$@"
		peak_of_group >"$BATS_TEST_TMPDIR/peak" ||
			{ remove_group "$group" && skip "groups know no peak"; }
		remove_group "$group"
		[ "$ended" = 0:ok ]
		peak=$(cat "$BATS_TEST_TMPDIR/peak")
		[ "$peak" -lt "$need" ] || need=$peak
	done
}

# lives_as_plain CASE BYTES...: with so much more than the program needs
lives_as_plain() {
	local case=$1 more how differ=

	shift
	measure_need "$case"
	make_group 1024
	for more in "$@"; do
		limit_group $((need + THREADS_BYTES + more))
		echo "$more bytes more than needed:"
		in_group plain "$case"
		[ "$ended" = 0:ok ] || continue
		for how in ahead ahead-small; do
			in_group $how "$case"
			[ "$ended" = 0:ok ] || differ="$differ $how:$more:$ended"
		done
	done
	remove_group "$group"
	[ -z "$differ" ]
}

# lives_in CASE HOW: three times
lives_in() {
	for _ in 1 2 3; do
		in_group "$2" "$1" >/dev/null
		[ "$ended" = 0:ok ] || return 1
	done
}

# least_limit CASE HOW: the smallest limit in pages in which it lives, in $least
least_limit() {
	local low=$(((need - 4 * MIB) / 4096)) high=$((need / 4096)) middle

	while ((high - low > 1)); do
		middle=$(((low + high) / 2))
		limit_group $((middle * 4096))
		if lives_in "$@"; then high=$middle; else low=$middle; fi
	done
	least=$high
}

# The kernel keeps up to 64 pages of a group in reserve on each CPU, and takes those of
# other CPUs back in time only if these are not busy.  So what is enough varies by as much,
# and one run or three say little near the limit.

# dies_in CASE HOW PAGES: eight times, where without it the program lives each time
dies_in() {
	limit_group $(($3 * 4096))
	for _ in 1 2 3 4 5 6 7 8; do
		in_group "$2" "$1"
		[ "$ended" != 0:ok ] || return 1
		in_group ahead-off "$1"
		[ "$ended" = 0:ok ] || return 1
	done
}

# least_limits CASE: in $plain and $off, without the shim and with it; again where they lie
# too far apart, and then the least of each
least_limits() {
	plain=$((need / 4096)) off=$((need / 4096 + 4 * SHIM_BYTES / 4096))
	for _ in 1 2 3; do
		least_limit "$1" plain
		((least >= plain)) || plain=$least
		least_limit "$1" ahead-off
		((least >= off)) || off=$least
		((off - plain > SHIM_BYTES / 4096)) || return 0
	done
}

# No thread begins there, whose stack and other memory in the kernel would be too much.
@test "a page more than the program needs is enough, but for the data of the shim" {
	local case least plain off more how failed=

	for case in fills fills-and-forks; do
		measure_need "$case"
		make_group 1024
		least_limits "$case"
		echo "$case: $plain pages, with the shim $off"
		for more in 1 4 16 32 64 128; do
			for how in ahead ahead-small; do
				if dies_in "$case" $how \
					$((off + SHIM_STACK_PAGES + more)); then
					failed="$failed $case:$more:$how"
				fi
			done
		done
		remove_group "$group"
		echo "failed:$failed"
		[ -z "$failed" ]
		((off - plain <= SHIM_BYTES / 4096))
	done
}

# is_helped CASE: where there is memory enough
is_helped() {
	measure_need "$1"
	make_group 1024
	limit_group $((need + 128 * MIB))
	for how in ahead-small ahead; do
		in_group $how "$1" waits
		[ "$ended" = 0:ok ] && made || break
	done
	remove_group "$group"
	[ "$ended" = 0:ok ]
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	made_or_skip
}

@test "a program lives in a group that has a page more than it needs, or more" {
	lives_as_plain fills "${MORE[@]}"
	is_helped fills
}

@test "also where it forks and both go on" {
	lives_as_plain fills-and-forks "${MORE[@]}"
	is_helped fills-and-forks
}

# What the first mapping has in vain by then: a sixteenth of its 128 MiB, 3 % of 96.
@test "where it fills a second mapping, if there is also what may be made in vain" {
	wasted=$((8 * MIB + 96 * MIB * 3 / 100))
	lives_as_plain fills-two $((wasted + 4096)) $((wasted + 64 * 1024)) \
		$((wasted + MIB)) $((wasted + 4 * MIB)) $((wasted + 8 * MIB)) \
		$((wasted + 16 * MIB)) $((33 * MIB)) $((36 * MIB)) $((40 * MIB)) \
		$((48 * MIB)) $((64 * MIB)) $((96 * MIB)) $((128 * MIB))
	is_helped fills-two
}

bad_day() {
	made_both_ways ahead-bad-days "$@"
}

# filter WHEN errno|kill CALL...: by name, each as without the shim
filter() {
	local when=$1 what=$2 name number

	shift 2
	for name in "$@"; do
		number=$(echo "#include <sys/syscall.h>
SYS_$name" | cc -E -P - | tail -1)
		run plain "$PROGRAMS/ahead-bad-days" filtered \
			"$when $what $number"
		echo "plain $when $what $name: $status $output"
		[ "$status" -eq 0 ]
		[ "$output" = ok ]
		bad_day filtered "$when $what $number"
	done
}

@test "a filter that refuses, or kills for what is not done, leaves memory to be made" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	filter before errno process_madvise
	made_or_skip
	filter before kill pidfd_open userfaultfd
	made_or_skip
}

@test "a filter that refuses what makes memory leaves it to the program" {
	filter before errno madvise mincore
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	filter middle errno madvise mincore process_madvise
	filter all errno madvise mincore process_madvise
}

@test "a filter kills nothing that makes memory, from the start or in the middle" {
	for when in before middle all; do
		filter $when kill madvise mincore futex clone3 pread64 \
			pidfd_open userfaultfd
		[ "$(nproc)" -gt 1 ] || skip "one CPU"
	done
}

@test "of 200 processes, 20 at once, none fails and nothing is left" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	bad_day forks-many
	# The parent, and those children whose watcher had a CPU in their short life.
	[ "$(grep -c '^ktask: ahead: ' "$REPORT")" -gt 1 ]
	make_group 1024
	in_group ahead forks-many
	remained=none
	for _ in {1..600}; do
		used=$(cat "$group/memory.usage_in_bytes" 2>/dev/null ||
			cat "$group/memory.current")
		[ "$used" -ge $((32 * MIB)) ] || { remained= && break; }
		sleep 0.1
	done
	# Not before the last process has left.
	remove_group "$group"
	[[ $ended != *"nothing was made ahead"* ]] || skip "no helper got a CPU"
	[ "$ended" = 0:ok ]
	[ -z "$remained" ]
}

# to_the_limit HOW WHEN: as a user of its own, who may have 48 processes; the files are for
# that user, too
to_the_limit() {
	local user=$((60000 + $$ % 5000)) limit=
	local program=("$PROGRAMS/ahead-bad-days" forks-to-the-limit "$2")

	[ "$2" = later ] || limit='ulimit -u 48 &&'
	REPORT=$(mktemp -p /tmp ktask-test.XXXXXX)
	chmod 666 "$REPORT"
	if [ "$1" = plain ]; then
		run plain setpriv --reuid=$user --regid=$user --clear-groups \
			timeout 300 bash -c "$limit exec \"\$@\"" bash \
			"${program[@]}"
	else
		run setpriv --reuid=$user --regid=$user --clear-groups \
			timeout 300 env KTASK_RUN_REPORT="$REPORT" \
			KTASK_RUN_OPS="$1" LD_PRELOAD="$SHIM" \
			bash -c "$limit exec \"\$@\"" bash "${program[@]}"
	fi
	echo "$1 $2: $status $output"
	said=$(cat "$REPORT")
	rm "$REPORT"
	echo "$said"
}

# forks_as_plain WHEN: as many children, and then EAGAIN
forks_as_plain() {
	[ "$(id -u)" = 0 ] || skip "not root"
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	to_the_limit plain "$1"
	[ "$status" -eq 0 ]
	[[ $output =~ ^[1-9][0-9]*" children"$'\n'ok$ ]]
	expected=$output
	for mode in ahead-small ahead; do
		to_the_limit $mode "$1"
		[[ $output != "nothing was made ahead"* ]] ||
			skip "no helper got a CPU"
		[ "$status" -eq 0 ]
		[ "$output" = "$expected" ]
	done
}

@test "a user who may have no more processes has as many, and fork fails then" {
	forks_as_plain before
	[[ $said == *"or processes (-u"* ]]
}

@test "also once memory was made ahead, when the watcher has seen the limit" {
	forks_as_plain later
}

@test "on a kernel before 5.14 nothing is made, and the report says so" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	bad_day older-kernel
	grep -q ': nothing is made ahead before Linux 5.14;' "$REPORT"
	! made || false
}

@test "guard pages stay, and hide what was made ahead" {
	run plain timeout 300 "$PROGRAMS/ahead-bad-days" guards
	[ "$status" -eq 0 ]
	[[ $output != *"no guard pages"* ]] ||
		skip "the kernel has no guard pages (6.13)"
	[ "$output" = ok ]
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	bad_day guards
	made_or_skip
}

@test "locked pages are whole, and as many" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	expected=$(plain timeout 300 "$PROGRAMS/ahead-bad-days" locks)
	[[ $expected == *"munlock: "*ok ]]
	bad_day locks
	made_or_skip
}

@test "nothing is made of memory that reserves none" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	bad_day reserves-not
	made_or_skip
}
