#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What a program touches in order is made before it gets there, and nothing else is;
# the program finds all else as it would be without that.

load shim.bash

unset KTASK_RUN_MIN
# Other tests run beside these.
export KTASK_OVERLOAD=ignore

ahead() {
	made_both_ways ahead-cases "$@"
}

changes() {
	made_both_ways ahead-changes-cases "$@"
}

@test "blocks of malloc and its kin are made ahead of their touches" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for how in malloc calloc realloc aligned_alloc posix_memalign valloc \
		pvalloc mmap; do
		ahead helped $how
		made
	done
}

@test "also downwards" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	ahead downwards
	made
}

@test "two processes at once are both served" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for mode in ahead-small ahead; do
		pids=
		for i in 1 2; do
			: >"$REPORT.$i"
			env LD_PRELOAD="$SHIM" KTASK_RUN_REPORT="$REPORT.$i" \
				KTASK_RUN_OPS=$mode timeout 300 \
				"$PROGRAMS/ahead-cases" helped \
				>"$BATS_TEST_TMPDIR/said.$i" 2>&1 &
			pids="$pids $!"
		done
		failed=
		for pid in $pids; do wait $pid || failed=1; done
		for i in 1 2; do
			cat "$BATS_TEST_TMPDIR/said.$i" "$REPORT.$i"
			if grep -q '^nothing was made ahead' \
				"$BATS_TEST_TMPDIR/said.$i"; then
				skip "no helper got a CPU"
			fi
			grep -qx ok "$BATS_TEST_TMPDIR/said.$i"
			REPORT=$REPORT.$i made
		done
		[ -z "$failed" ]
	done
}

@test "what is made and not touched is within the bound" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	ahead wastes
}

@test "a program that thins out gets no huge pages for single stores" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	ahead thins-out waits
	made_or_skip
	KTASK_OVERLOAD= ahead thins-out
}

@test "several threads are served, each at its own place of a mapping" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for nr in 2 8; do
		ahead parts $nr
		made_or_skip
	done
}

@test "memory that is only read becomes nobody's" {
	ahead reads
}

@test "random touches and touches by twos are left alone" {
	ahead scattered random
	[ "$(nproc)" = 1 ] || grep -q 'touched at random' "$REPORT"
	ahead scattered twos
}

@test "touches in steps are made ahead, nothing between them, and little in vain" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for step in 2 5 -3 -16; do
		ahead walks $step
		made
	done
}

@test "a child of fork has its memory, and its own library" {
	changes forks
}

@test "a program whose threads a debugger stops is helped" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	changes traced
}

@test "no signal of the program is taken by another thread" {
	changes signals
}

@test "no descriptor number is taken from under the program" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	changes descriptors
	made_or_skip
}

@test "what is discarded stays absent" {
	changes discards
}

@test "what comes in place of the memory is not touched" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	changes replaces
	made_or_skip
	changes becomes-segment
	made_or_skip
}

@test "what changes memory is no cancellation point where it waits for helpers" {
	changes cancelled
}

@test "memory can be moved and grown, whatever pages were advised" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	changes moves
	made_or_skip
	changes reallocates
	made_or_skip
}

@test "what is left of a mapping can be moved and grown" {
	changes moves-rest
}

@test "a part that is mapped anew and touched can be moved with the rest" {
	changes moves-anew
}

@test "memory that replaced all of a mapping is moved with its neighbour" {
	changes moves-whole
}

@test "a part that is mapped anew with its pages can be moved with the rest" {
	changes moves-populated
}

@test "what is mapped beside a segment that replaced memory has no advice" {
	changes attaches
}

@test "memory that grows by mremap is made ahead too, and only what is private" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	changes grows-otherwise
	changes grows
	made
}

@test "ten threads map, change and unmap" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	changes ten-threads
	made_or_skip
}

@test "small pages that the program asked for stay small" {
	ahead small-pages
}

@test "helpers have ordinary slices of a CPU" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	ahead slices
}

# Where they are had on advice; the program then makes them itself.
@test "a program that keeps all CPUs busy is advised huge pages" {
	grep -q '\[madvise\]' /sys/kernel/mm/transparent_hugepage/enabled ||
		skip "huge pages are not had on advice"
	[ "$(cat /sys/kernel/mm/transparent_hugepage/hpage_pmd_size)" = 2097152 ] ||
		skip "huge pages have another size"
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	# The watcher needs a CPU now and then, so a busy machine gets more runs.
	for _ in {1..5}; do
		: >"$REPORT"
		KTASK_OVERLOAD= KTASK_RUN_OPS=ahead run shimmed timeout 300 \
			"$PROGRAMS/ahead-cases" fills-cpus
		echo "$output"
		cat "$REPORT"
		[ "$output" != ok ] || break
	done
	! grep -q 'too little memory is left' "$REPORT" || skip "too little memory"
	# The program has counted how often the watcher slept: a shim that had a CPU and advised
	# nothing fails.
	if [[ $output == *"the watcher got no CPU" ]]; then
		grep -q '^ktask: ahead: 1 mapping of ' "$REPORT"
		skip "the watcher got no CPU"
	fi
	[ "$output" = ok ]
	grep -q '^ktask: ahead: 1 mapping of .*, huge pages advised for' "$REPORT"
}

@test "there is no thread where its stack would count against a limit" {
	expected="1 threads
ok"
	ulimit -v $((4 << 20))
	ahead threads
	grep -q 'nothing is made ahead with a limit on memory' "$REPORT"
}

@test "there is no thread where policy allows no helper, or it counts against a limit" {
	for how in 'export KTASK_MAX_THREADS=1' 'export KTASK_CAP_PERCENT=0' \
		'ulimit -u 1'; do
		for mode in ahead ahead-small; do
			KTASK_RUN_OPS=$mode run shimmed timeout 300 bash -c \
				"$how && exec \"\$0\" threads" \
				"$PROGRAMS/ahead-cases"
			echo "$how: $status $output"
			[ "$status" -eq 0 ]
			[ "$output" = "1 threads
ok" ]
		done
	done
}

@test "the last threads of a control group are the program's" {
	make_group_of_threads
	for mode in ahead ahead-small; do
		KTASK_RUN_OPS=$mode run shimmed timeout 60 \
			"$PROGRAMS/ahead-cases" last-threads "$group"
		echo "$mode: $status $output"
		[ "$status" -eq 0 ] && [ "$output" = ok ] || break
	done
	remove_group "$group"
	[ "$status" -eq 0 ]
	[ "$output" = ok ]
	cat "$REPORT"
	grep -q 'nothing is made ahead with a limit on memory' "$REPORT"
}

@test "a program that handles its page faults gets those that it had" {
	expected=$(plain timeout -s KILL 300 "$PROGRAMS/watch-cases" fault syscall)
	[ "$expected" != none ] || skip "no userfaultfd"
	KTASK_RUN_MIN=1048576 KTASK_RUN_OPS=ahead run shimmed \
		timeout -s KILL 300 "$PROGRAMS/watch-cases" fault syscall
	echo "$output"
	[ "$output" = "$expected" ]
}

# In a group that has little more than the program needs nothing is made ahead, so
# that it ends as it would have ended.
@test "a program that fits into its control group still does" {
	make_group 64
	ends=
	for mode in ahead ahead-small; do
		(
			echo "$BASHPID" >"$group/cgroup.procs"
			KTASK_RUN_OPS=$mode shimmed timeout 300 \
				"$PROGRAMS/ahead-cases" fills 58
		) >"$BATS_TEST_TMPDIR/said" 2>&1 || ends="$ends $mode:$?"
		cat "$BATS_TEST_TMPDIR/said" "$REPORT"
	done
	remove_group "$group"
	[ -z "$ends" ]
}

@test "random calls return the same, and leave the same contents" {
	load random.bash
	export KTASK_RUN_MIN=1048576 KTASK_RUN_OPS=ahead
	sequences 6 contents
}

@test "a dry run tells of memory that would be watched" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	run plain "$KTASK_BUILD/ktask" run --dry-run -- \
		"$PROGRAMS/ahead-cases" fills 40
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"ktask: would watch the touches of 40.0 MiB (ahead-cases, "* ]]
	[[ $output =~ "ktask: run: would take over nothing"[^$'\n']*"; it had "[0-9.]+" MiB mapped, "[0-9.]+" MiB touched (ahead-cases" ]]
}

# forecasts HOW WORDS: by a dry run over touches of that kind.  The watcher needs a CPU
# meanwhile, so a busy machine gets more runs.
forecasts() {
	for _ in {1..10}; do
		run plain "$KTASK_BUILD/ktask" run --dry-run -- \
			"$PROGRAMS/ahead-cases" scattered "$1"
		echo "$1: $status $output"
		[ "$status" -eq 0 ] || return 1
		[[ $output == *$'\n'ok* || $output == ok* ]] || return 1
		[[ ! $output =~ $2 ]] || return 0
	done
	return 1
}

@test "a dry run makes nothing, and says what could be made" {
	local made="[KM]iB touched in order, of which helpers would make a part"

	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	made+=" ahead \(at most [0-9.]+ s saved, at most [0-9.]+ [KM]iB untouched\)"
	forecasts order "$made"
	forecasts steps "$made"
	forecasts random "0 bytes touched in order, nothing would be made ahead"
}

words_of() {
	run plain "$KTASK_BUILD/ktask" run "$@" -- sh -c 'echo "$KTASK_RUN_OPS"'
}

# administered LINE CASE: with that line in ktask.conf, as `ktask run` does it
administered() {
	local line=$1

	shift
	: >"$REPORT"
	run unshare -m bash -c "mount -t tmpfs -o mode=755 none /etc &&
		echo '$line' >/etc/ktask.conf && exec \"\$@\"" bash \
		"$KTASK_BUILD/ktask" run $how --report="$REPORT" -- \
		timeout 300 "$PROGRAMS/ahead-cases" "$@"
	echo "$line: $status $output"
	cat "$REPORT"
	[ "$status" -eq 0 ]
}

@test "the administrator switches it off, or huge pages in it, and nobody on again" {
	[ "$(id -u)" = 0 ] || skip "not root"
	unshare -m true || skip "no mount namespaces"
	[ "$(nproc)" -gt 1 ] || skip "one CPU"
	for how in "" --ahead=on --ahead=small; do
		administered 'ahead = off' threads
		[ "$output" = "1 threads
ok" ]
		grep -q '256.0 MiB to the kernel: nothing is made ahead, by /etc/ktask.conf' "$REPORT"
	done
	how=--ahead=on
	administered 'ahead = small' small-unadvised
	[ "$output" = ok ]
	how=--ahead=off
	administered 'ahead = on' threads
	! grep 'ktask: ahead\|ktask.conf' "$REPORT" || false
}

@test "it is on by default, on and off by name, and off where calls are listed" {
	for one in "" --ahead=small --ahead=on --threads=2; do
		words_of $one
		[[ $output == *ahead* ]]
		[[ $output != *ahead-off* ]]
	done
	words_of --ops mmap
	[[ $output != *ahead* ]]
	words_of "$KTASK_BUILD/ktask" run --ops mmap
	[[ $output == *mmap* && $output != *ahead* ]]
	words_of --ops mmap --ahead=on
	[[ $output == *ahead* ]]
	KTASK_RUN_OPS=mlock words_of
	[ "$output" = mlock ]
	words_of --ahead=off "$KTASK_BUILD/ktask" run
	[[ $output == *ahead-off* ]]
	run plain "$KTASK_BUILD/ktask" run --ahead=some -- true
	[ "$status" -eq 2 ]
}
