#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask run --report`: each process begins with one line that says what was
# taken over, or why nothing was; what is counted is memory that was there.

bats_require_minimum_version 1.5.0

load shim.bash

# The end of a process depends on what else runs.
export KTASK_RUN_OPS=mmap,madvise,munmap

reported() {
	unset KTASK_RUN_MIN
	: >"$REPORT"
	run shimmed "$PROGRAMS/report-cases" "$@"
	echo "$status $output"
	cat "$REPORT"
	[ "$status" -eq 0 ]
}

HAD='; it had [0-9.]* [KMGT]iB mapped, [0-9.]* [KMG]iB touched'

# has COUNT LINE: so many lines that begin so, to the name of the process; the first one
# of a process also says how much memory it had
has() {
	local memory=

	[[ $2 != run:* ]] || memory=$HAD
	[[ $2 != *"$HAD"* ]] || memory=
	[ "$(grep -c "^ktask: $2$memory *(report-cases, [0-9]*)\$" "$REPORT")" = "$1" ]
}

summaries() {
	[ "$(grep -c '^ktask: run: took over' "$REPORT")" = "$1" ]
}

@test "nothing large: how large the largest was" {
	reported small
	has 1 'run: took over nothing: no call that makes or gives back memory was on 32.0 MiB or more (the largest: 128.0 KiB)'
	[ "$(wc -l <"$REPORT")" = 1 ]
}

# had MAPPED TOUCHED: so many MiB or up to 24 more; 0: less than 24
had() {
	local text mapped touched

	text=$(grep -o "$HAD" "$REPORT")
	read -r _ _ _ mapped _ _ touched _ <<<"$text"
	text=${text//[^0-9. KMG]/}
	echo "mapped $mapped, touched $touched MiB"
	[ "${mapped%.*}" -ge "$1" ] && [ "${mapped%.*}" -lt $(($1 + 24)) ]
	[ "${touched%.*}" -ge "$2" ] && [ "${touched%.*}" -lt $(($2 + 24)) ]
}

@test "how much memory it had, whatever was taken over" {
	reported small
	had 0 0
	reported touch
	had 64 64
	reported brief
	had 64 0
	reported many-small
	had 128 128
	has 1 'run: took over nothing: no call that makes or gives back memory was on 32.0 MiB or more; its memory came by little at a time, or from malloc, of which nothing is made ahead here (--ahead=off, --prefault)'
	KTASK_RUN_OPS=$KTASK_RUN_OPS,ahead reported many-small
	has 1 'run: took over nothing: no call that makes or gives back memory was on 32.0 MiB or more; its memory came by little at a time, so that nothing lay ahead'
}

@test "memory that is mapped and touched: what would make it present" {
	reported touch
	has 1 'run: took over nothing; left 1 call on 64.0 MiB to the kernel: memory was mapped, its pages not asked for (--prefault makes them)'
	[ "$(wc -l <"$REPORT")" = 1 ]
}

@test "a kind that was not named" {
	KTASK_RUN_OPS=mlock reported populate
	has 1 'run: took over nothing; left 1 call on 64.0 MiB to the kernel: not named by --ops'
}

@test "what was taken over comes first, then each kind" {
	reported populate
	has 1 'run: took over 1 call on 64.0 MiB'
	has 1 'mmap: 1 call, 67108864 bytes, .*'
	# What did not happen is not told.
	has 0 'mmap: .* left to the kernel'
	[ "$(wc -l <"$REPORT")" = 2 ]
}

@test "what the kernel refused, or the shim does not know, was large all the same" {
	reported populate-otherwise
	has 1 'run: took over nothing; left 2 calls on 64.0 MiB to the kernel'
	grep -q '^ktask: run: left 1 call on 0 bytes to the kernel: it refused the mapping (report-cases, ' "$REPORT"
	grep -q '^ktask: run: left 1 call on 64.0 MiB to the kernel: mapped in a way that the shim does not take over (report-cases, ' "$REPORT"
	[ "$(wc -l <"$REPORT")" = 3 ]
}

@test "memory that was not there is given back at once, which is said" {
	reported brief
	has 1 'munmap: 1 call, 0 bytes, [0-9.]* s, no page of it was present'
}

@test "memory that was present before mlock needs no helper, which is said" {
	KTASK_RUN_OPS=mlock reported lock-present
	[ "$output" != refused ] || skip "no right to lock so much memory"
	# Helpers may have come all the same.
	has 1 'mlock: 1 call, 67108864 bytes, [0-9.]* s, \(all of it was present\|at most [0-9.]* s saved, [0-9]* threads\)'
}

@test "an end by _exit" {
	reported _exit
	has 1 'run: took over 1 call on 64.0 MiB'
}

@test "a limit of one thread is named" {
	KTASK_MAX_THREADS=1 reported populate
	has 1 'mmap: .*, 1 thread: no more are allowed (ktask topo)'
}

@test "a time of nothing is in no line" {
	for one in populate brief touch; do
		KTASK_RUN_OPS=mmap,$([ $one = touch ] && echo ahead ||
			echo prefault) reported $one
		! grep -E ' at most 0\.000000 s|0 bytes, 0\.000000 s' "$REPORT" ||
			false
	done
}

@test "memory made ahead: how much, or that no helper came" {
	KTASK_RUN_OPS=prefault reported brief
	grep -E '^ktask: prefault: 1 call, (0 bytes made present ahead: no helper got a CPU before the program used or unmapped the memory|[1-9][0-9]* bytes made present ahead by helpers, in [0-9.]+ s of CPU time) \(report-cases, ' "$REPORT"
}

@test "address space that is given back counts as far as it was present" {
	reported space
	[ "$(taken munmap bytes)" = $((32 << 20)) ]
	reported advise-space
	[ "$(taken madvise bytes)" = $((8 << 20)) ]
}

@test "so does address space that is left to the kernel, or would be given back" {
	KTASK_RUN_OPS=mlock reported space
	has 1 'run: took over nothing; left 1 call on 32.0 MiB to the kernel: not named by --ops'
	KTASK_RUN_OPS=mlock reported advise-space
	has 1 'run: took over nothing; left 1 call on 8.0 MiB to the kernel: not named by --ops'
	KTASK_RUN_OPS=dry,munmap reported space
	[[ $output == *"ktask: would do munmap of 32.0 MiB ("* ]]
	KTASK_RUN_OPS=dry,madvise reported advise-space
	[[ $output == *"ktask: would do madvise of 8.0 MiB ("* ]]
}

@test "calls of a child that shares the memory" {
	reported vfork
	has 1 'run: took over nothing; left 2 calls on 128.0 MiB to the kernel: made by a child that shares the memory (vfork)'
}

@test "a child of fork has a line of its own" {
	reported fork
	summaries 2
	has 2 'run: took over nothing: no call that makes or gives back memory was on 32.0 MiB or more'
}

@test "a child by a bare clone has a line of its own if it calls exit" {
	reported clone
	has 1 'run: took over 1 call on 64.0 MiB'
	summaries 1
	obstacle 1 'it is a child by clone() or _Fork(), of which the library is not told' report-cases
	[ "$(grep -o '[0-9]*)$' "$REPORT" | sort -u | wc -l)" = 2 ]
}

@test "a process that becomes another program says what it did before" {
	reported exec small
	has 1 "run: took over 2 calls on 128.0 MiB$HAD; then it called exec to become another program"
	summaries 2
	[ "$(grep -c 'mmap: 2 calls' "$REPORT")" = 1 ]
	has 1 'run: took over nothing: no call that makes or gives back memory was on 32.0 MiB or more (the largest: 128.0 KiB)'
	# All of it is one process.
	[ "$(grep -o '[0-9]*)$' "$REPORT" | sort -u | wc -l)" = 1 ]
}

# obstacle COUNT WHY NAME: so many lines of programs without the shim
obstacle() {
	[ "$(grep -c "^ktask: run: nothing can be taken over: .*$2.* ($3, [0-9]*)\$" "$REPORT")" = "$1" ]
}

@test "a program that nothing can be preloaded into, from another one" {
	cd "$BATS_TEST_TMPDIR"
	echo 'int main(void) { return 0; }' >static.c
	cc -static -o static static.c || skip "no static C library"
	printf '#!%s/static\n' "$PWD" >script
	chmod +x script
	for one in ./static ./script; do
		: >"$REPORT"
		shimmed nice "$one"
		cat "$REPORT"
		obstacle 1 'linked statically' "${one#./}"
		[ "$(wc -l <"$REPORT")" = 1 ]
	done
	for shell in sh bash; do
		: >"$REPORT"
		shimmed $shell -c './static; PATH=/nonexistent:$PWD; exec static'
		cat "$REPORT"
		obstacle 2 'linked statically' static
		[ "$(wc -l <"$REPORT")" = 2 ]
	done
}

@test "a program that is started without the shim" {
	for one in 'env -i /bin/true' 'env -u LD_PRELOAD true'; do
		: >"$REPORT"
		shimmed $one
		cat "$REPORT"
		obstacle 1 'LD_PRELOAD does not name' true
		[ "$(wc -l <"$REPORT")" = 1 ]
	done
}

@test "a program that closes all descriptors but the first three" {
	REPORT=1 shimmed bash -c 'for fd in /proc/self/fd/*; do
		fd=${fd##*/}
		((fd < 3)) || eval "exec $fd>&-"
	done' 2>"$REPORT"
	cat "$REPORT"
	grep -q '^ktask: run: took over nothing.* (bash, ' "$REPORT"
}

@test "a program that is not there, or cannot be started, has no line" {
	run -127 shimmed nice /nonexistent
	run -126 shimmed nice /etc/passwd
	cat "$REPORT"
	! grep 'nothing can be' "$REPORT" || false
}

@test "a child of posix_spawn" {
	reported spawn populate
	summaries 2
}

@test "a static child of posix_spawn has a line, with its own number" {
	cd "$BATS_TEST_TMPDIR"
	echo 'int main(void) { return 0; }' >static.c
	cc -static -o static static.c || skip "no static C library"
	for how in spawn-path spawn-name; do
		: >"$REPORT"
		PATH=$PWD:$PATH run shimmed "$PROGRAMS/report-cases" $how static
		cat "$REPORT"
		echo "$output"
		[ "$status" -eq 0 ]
		obstacle 1 'linked statically' static
		grep -q "(static, ${output#child })\$" "$REPORT"
	done
	: >"$REPORT"
	shimmed "$PROGRAMS/report-cases" spawn-path nothing
	obstacle 0 '' nothing
}

@test "a program that is executed by descriptor has its file's name" {
	cd "$BATS_TEST_TMPDIR"
	echo 'int main(void) { return 0; }' >static.c
	cc -static -o static static.c || skip "no static C library"
	for how in fexecve execveat execveat-of-fd; do
		: >"$REPORT"
		shimmed "$PROGRAMS/report-cases" $how ./static
		cat "$REPORT"
		obstacle 1 'linked statically' static
	done
}

@test "an execveat() that fails changes nothing" {
	reported execveat-fails
	summaries 1
}

@test "a program that cannot be started is not what the process became" {
	reported exec-fails
	summaries 1
	has 1 'run: took over 1 call on 64.0 MiB'
}

@test "what exec cannot read is an error, with a report and without" {
	unset KTASK_RUN_MIN
	for how in KTASK_RUN_REPORT="$REPORT" KTASK_RUN_REPORT=; do
		plain "$PROGRAMS/bad-exec-cases" >"$BATS_TEST_TMPDIR/plain"
		env LD_PRELOAD="$SHIM" $how "$PROGRAMS/bad-exec-cases" \
			>"$BATS_TEST_TMPDIR/shimmed"
		diff -u "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed"
	done
	cat "$REPORT" "$BATS_TEST_TMPDIR/plain"
	grep -q 'no path: -1, Bad address' "$BATS_TEST_TMPDIR/plain"
	summaries 1
	grep -q '^ktask: run: took over 1 call on 64.0 MiB' "$REPORT"
}

@test "a process reports before an exec whose program the shim cannot read" {
	unset KTASK_RUN_MIN
	same_output "$PROGRAMS/bad-exec-cases" unread
	cat "$REPORT"
	grep -q 'nothing: -1, No such file' "$BATS_TEST_TMPDIR/plain"
	grep -q '^ktask: run: took over 1 call on 64.0 MiB.*; then it called exec of a program that could not be read ' "$REPORT"
}

@test "a program with too many arguments is not what the process became" {
	reported exec-fails-of-size
	summaries 1
	has 1 'run: took over 1 call on 64.0 MiB'
}

@test "a file that is no program is not what the process became" {
	reported exec-fails-of-format "$BATS_TEST_TMPDIR/file"
	[ "$(wc -l <"$REPORT")" = 2 ]
	summaries 1
	has 1 'run: took over 1 call on 64.0 MiB'
	# Nor has it a line where the shim would not be loaded into it.
	: >"$REPORT"
	echo 'exit 3' >"$BATS_TEST_TMPDIR/script"
	chmod +x "$BATS_TEST_TMPDIR/script"
	run -3 shimmed bash -c 'unset LD_PRELOAD; "$1"; exit $?' bash \
		"$BATS_TEST_TMPDIR/script"
	cat "$REPORT"
	obstacle 0 '' script
}

@test "a script behind a descriptor that exec closes is not what the process became" {
	reported exec-fails-of-descriptor "$BATS_TEST_TMPDIR/script"
	summaries 1
	has 1 'run: took over 1 call on 64.0 MiB'
}

# with_formats COMMAND...: run where binfmt_misc has entries of this test alone
with_formats() {
	unshare -Urm mount -t binfmt_misc none /proc/sys/fs/binfmt_misc ||
		skip "no binfmt_misc in a user namespace"
	unset KTASK_RUN_MIN
	: >"$REPORT"
	run unshare -Urm bash -c 'cd /proc/sys/fs/binfmt_misc &&
		mount -t binfmt_misc none . && cd . || exit
		echo ":magic:M:1:\x01\xff:\xff\x0f:/bin/true:" >register &&
		echo ":name:E::ours::/bin/true:" >register &&
		echo ":gone:M::gone::/nonexistent:" >register &&
		echo ":off:M::off::/bin/true:" >register && echo 0 >off || exit
		LD_PRELOAD=$1 KTASK_RUN_REPORT=$2 exec "${@:3}"' bash \
		"$SHIM" "$REPORT" "$@"
	echo "$status $output"
	cat "$REPORT"
}

@test "a file that an entry of binfmt_misc starts is what the process became" {
	local name

	printf '\177\001\37\n' >"$BATS_TEST_TMPDIR/magic"
	echo >"$BATS_TEST_TMPDIR/a.ours"
	# Not an extension, another byte, without a program, not enabled.
	echo >"$BATS_TEST_TMPDIR/ours"
	printf '\177\001\36\n\0' >"$BATS_TEST_TMPDIR/near"
	printf 'gone\0' >"$BATS_TEST_TMPDIR/gone"
	printf 'off\0' >"$BATS_TEST_TMPDIR/off"
	chmod +x "$BATS_TEST_TMPDIR"/*
	for name in magic a.ours; do
		with_formats "$PROGRAMS/report-cases" exec-script "$BATS_TEST_TMPDIR/$name"
		[ "$status" -eq 0 ]
		has 1 "run: took over 1 call on 64.0 MiB$HAD; then it called exec to become another program"
	done
	# ENOEXEC, ENOENT
	for name in 'ours 8' 'near 8' 'gone 2' 'off 8'; do
		with_formats "$PROGRAMS/report-cases" exec-script \
			"$BATS_TEST_TMPDIR/${name% *}"
		[ "$status" -eq "${name#* }" ]
		summaries 1
		has 1 'run: took over 1 call on 64.0 MiB'
	done
	with_formats "$PROGRAMS/report-cases" exec-fails-of-format "$BATS_TEST_TMPDIR/file"
	[ "$status" -eq 0 ]
	summaries 1
}

@test "a thread that is to be cancelled goes on if it cannot become another program" {
	reported exec-fails-cancelled "$BATS_TEST_TMPDIR/file"
	has 1 'run: took over 1 call on 64.0 MiB'
}

@test "a script of a script is what the process became, as far as the kernel goes" {
	local interpreter

	interpreter=$(type -P true)
	for i in 1 2 3 4 5 6; do
		echo "#!$interpreter" >"$BATS_TEST_TMPDIR/$i"
		chmod +x "$BATS_TEST_TMPDIR/$i"
		interpreter=$BATS_TEST_TMPDIR/$i
	done
	run -0 shimmed "$PROGRAMS/report-cases" exec-script "$BATS_TEST_TMPDIR/5"
	cat "$REPORT"
	has 1 "run: took over 1 call on 64.0 MiB$HAD; then it called exec to become another program"
	: >"$REPORT"
	# ELOOP
	run -40 shimmed "$PROGRAMS/report-cases" exec-script "$BATS_TEST_TMPDIR/6"
	cat "$REPORT"
	summaries 1
	has 1 'run: took over 1 call on 64.0 MiB'
	[ "$(grep -c 'then it called exec' "$REPORT")" = 0 ]
}

@test "a script that the C library gives to a shell is what the process became" {
	reported exec-by-shell "$BATS_TEST_TMPDIR/script"
	has 1 "run: took over 1 call on 64.0 MiB$HAD; then it called exec to become another program"
	[ "$(grep -c '^ktask: run: took over nothing.* (sh, [0-9]*)$\|^ktask: run: took over nothing.* (dash, [0-9]*)$' "$REPORT")" = 1 ]
}

@test "nor is one where nothing may be executed" {
	[ "$(id -u)" = 0 ] || skip "not root"
	unshare -m true || skip "no mount namespaces"
	unset KTASK_RUN_MIN
	run unshare -m bash -c 'mount -t tmpfs -o noexec none /mnt &&
		cp /bin/true /mnt && LD_PRELOAD=$1 KTASK_RUN_REPORT=$2 \
		exec "$3" exec-fails-there /mnt/true' bash \
		"$SHIM" "$REPORT" "$PROGRAMS/report-cases"
	echo "$status $output"
	cat "$REPORT"
	[ "$status" -eq 0 ]
	summaries 1
	has 1 'run: took over 1 call on 64.0 MiB'
}

# complaint PATH WHY: that alone is what $output has
complaint() {
	echo "$output"
	[[ $output =~ ^"ktask: run: writing the report $1: $2 ("[^\ ]+", "[0-9]+")"$ ]]
}

@test "a report that cannot be written is told once, and changes no status" {
	[ -w /dev/full ] || skip "no /dev/full"
	REPORT=/dev/full run -3 shimmed bash -c 'exit 3'
	complaint /dev/full "No space left on device"
	# Two kinds of calls would be two lines.
	REPORT=/dev/full run -0 shimmed "$PROGRAMS/report-cases" populate
	complaint /dev/full "No space left on device"
	# Once in a run, however many processes there are.
	run -0 "$KTASK_BUILD/ktask" run --report=/dev/full -- \
		bash -c 'for i in 1 2 3; do /bin/true; done'
	complaint /dev/full "No space left on device"
	# Some close their standard error first.
	run -0 "$KTASK_BUILD/ktask" run --report=/dev/full -- ls -d /
	[ "${lines[0]}" = / ]
	output=${lines[1]} complaint /dev/full "No space left on device"
	mkdir "$BATS_TEST_TMPDIR/gone"
	run -0 "$KTASK_BUILD/ktask" run --report="$BATS_TEST_TMPDIR/gone/log" \
		-- rmdir "$BATS_TEST_TMPDIR/gone"
	complaint "$BATS_TEST_TMPDIR/gone/log" "No such file or directory"
}

@test "what cannot be told is told in no file of the program" {
	[ -w /dev/full ] || skip "no /dev/full"
	REPORT=/dev/full run -0 shimmed bash -c 'exec 2>"$1"' bash \
		"$BATS_TEST_TMPDIR/file"
	[ ! -s "$BATS_TEST_TMPDIR/file" ]
}

@test "a name cannot write on the terminal, nor make another line" {
	local name=$'./a\e[2J\nktask: \xc2\x9b\xc3\xa9\xff' shown='a?\[2J?ktask: ??é?'
	cd "$BATS_TEST_TMPDIR"
	cp "$(type -P true)" "$name"
	shimmed "$name"
	shimmed env -u LD_PRELOAD "$name"
	cat -v "$REPORT"
	grep -q "^ktask: run: took over nothing.* ($shown, [0-9]*)\$" "$REPORT"
	grep -q "^ktask: run: nothing can be taken over: .* ($shown, [0-9]*)\$" "$REPORT"
	[ "$(wc -l <"$REPORT")" = 2 ]
	[ -w /dev/full ] || skip "no /dev/full"
	ln -s /dev/full "$name.full"
	REPORT=$name.full run -0 shimmed true
	complaint './a?[2J?ktask: ??é?.full' "No space left on device"
}
