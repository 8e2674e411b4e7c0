#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask run`: status, arguments, environment and streams are the command's.

load helpers

@test "the exit status is the command's" {
	for status_wanted in 0 1 2 7 125 255; do
		run "$ktask" run -- sh -c "exit $status_wanted"
		[ "$status" -eq "$status_wanted" ]
	done
}

@test "a signal that ends the command is seen as such" {
	run "$ktask" run -- sh -c 'kill -TERM $$'
	[ "$status" -eq 143 ]
}

@test "no such command: 127; one that cannot be run: 126" {
	says 127 "run: starting nosuch: No such file or directory" \
		"$ktask" run nosuch
	says 126 "run: starting /etc/passwd: Permission denied" \
		"$ktask" run /etc/passwd
}

@test "arguments arrive as they were given" {
	run -0 "$ktask" run printf '<%s>' "a b" "" --threads -- '*'
	[ "$output" = "<a b><><--threads><--><*>" ]
}

@test "it becomes the command, not its parent" {
	run -0 sh -c 'echo $$; exec "$0" run sh -c "echo \$\$"' "$ktask"
	[ "${lines[0]}" = "${lines[1]}" ]
}

@test "standard input passes through" {
	run -0 sh -c "echo hello | '$ktask' run cat"
	[ "$output" = hello ]
}

@test "the shim comes first, what was preloaded stays" {
	run -0 "$ktask" run sh -c 'echo "$LD_PRELOAD"'
	[ "$output" = "$(readlink -f "$build")/libktask-preload.so" ]
	local other
	other=$(ldd "$(command -v cat)" | awk '/libc\.so/ { print $3 }')
	LD_PRELOAD=$other run -0 "$ktask" run sh -c 'echo "$LD_PRELOAD"'
	[ "$output" = "$(readlink -f "$build")/libktask-preload.so:$other" ]
}

@test "options become the environment, in bytes and whole paths" {
	cd "$BATS_TEST_TMPDIR"
	run -0 "$ktask" run --threads 3 --min 64M --ops madvise,mlock \
		--report=log -- sh -c 'env | grep -E ^KTASK_\(RUN\|MAX\) | sort'
	[ "${lines[0]}" = KTASK_MAX_THREADS=3 ]
	[ "${lines[1]}" = KTASK_RUN_MIN=67108864 ]
	[ "${lines[2]}" = KTASK_RUN_OPS=madvise,mlock ]
	[[ ${lines[3]} =~ ^KTASK_RUN_RECORDS=/proc/[0-9]+/fd/[0-9]+$ ]]
	[ "${lines[4]}" = "KTASK_RUN_REPORT=$BATS_TEST_TMPDIR/log" ]
	[ "${#lines[@]}" -eq 5 ]
	run -0 --separate-stderr "$ktask" run --report sh -c 'echo "$KTASK_RUN_REPORT"'
	[ "$output" = 1 ]
}

@test "what was in the environment stays unless an option replaces it" {
	KTASK_MAX_THREADS=5 KTASK_RUN_MIN=4096 run -0 "$ktask" run \
		--threads 2 sh -c 'echo $KTASK_MAX_THREADS $KTASK_RUN_MIN'
	[ "$output" = "2 4096" ]
	run -0 "$ktask" run sh -c 'env | grep -E ^KTASK_\(RUN\|MAX\)'
	[[ $output =~ ^KTASK_RUN_OPS=ahead(,filter-ok)?$ ]]
	run -0 "$ktask" run --ahead=off sh -c 'env | grep -E ^KTASK_\(RUN\|MAX\)'
	[[ $output =~ ^KTASK_RUN_OPS=ahead-off(,filter-ok)?$ ]]
}

# words_of OPTION...: what the shim is told, except of a filter outside of this test
words_of() {
	run -0 "$ktask" run "$@" sh -c 'echo "[${KTASK_RUN_OPS-unset}]"'
	output=$(grep '^\[' <<<"$output")
	output=${output//filter-ok,/}
	output=${output//,filter-ok/}
}

@test "what an outer run says holds for an inner one that does not say it" {
	words_of --dry-run --ops mlock
	[ "$output" = "[dry,mlock]" ]
	for inner in "" "--ops madvise" "--ahead=on" "--prefault"; do
		words_of --dry-run "$ktask" run $inner
		[[ $output == "[dry,"* ]]
	done
	words_of --ops mlock "$ktask" run
	[ "$output" = "[mlock]" ]
	words_of --ops mlock "$ktask" run --ops madvise
	[ "$output" = "[madvise]" ]
	for outer in --prefault --prefault=wait; do
		words_of "$outer"
		local as_outer=$output
		words_of "$outer" "$ktask" run
		[ "$output" = "$as_outer" ]
	done
	words_of --prefault "$ktask" run --prefault=wait
	[ "$output" = "[prefault-wait,ahead]" ]
	words_of --prefault "$ktask" run --ahead=off
	[ "$output" = "[prefault,ahead-off]" ]
	words_of "$ktask" run --prefault
	[ "$output" = "[prefault,ahead]" ]
	KTASK_RUN_OPS= words_of
	[ "$output" = "[]" ]
}

@test "an outer forecast stays one, and nothing is taken over" {
	run -0 "$ktask" run --dry-run -- "$ktask" run -- sh -c 'echo "$0"' ran
	[ "${lines[0]}" = ran ]
	[[ ${lines[1]} == "ktask: run: would take over nothing: "*" (sh, "* ]]
	[ "${#lines[@]}" = 2 ]
	run -0 "$ktask" run --dry-run --min 1M -- "$ktask" run --report -- \
		perl -e 'my $x = "x" x (8 << 20); print "ran\n"'
	echo "$output"
	[[ $output == *ran* ]]
	[[ $output != *"iB made ahead"* ]]
}

# Where a filter is there, more than that is needed.
no_filter() {
	grep -q "^Seccomp:.0$" /proc/self/status || skip "behind a filter"
	readelf -l "$ktask" | grep -q INTERP && skip "there is no launcher" || :
}

@test "a run without options needs only the shim, and does what others do" {
	no_filter
	local dir=$BATS_TEST_TMPDIR/alone
	mkdir "$dir"
	cp "$ktask" "$build/libktask-preload.so" "$dir"
	run -0 "$dir/ktask" run printf '<%s>' "a b" "" -x --
	[ "$output" = "<a b><><-x><-->" ]
	run -0 "$dir/ktask" run -- sh -c 'env | grep -v ^_= | sort' one
	local plain=$output
	cp "$build/ktask-commands" "$dir"
	run -0 "$dir/ktask-commands" run -- sh -c 'env | grep -v ^_= | sort' one
	[ "$output" = "$plain" ]
	cd "$dir"
	printf 'echo script $1\n' >script
	chmod +x script
	PATH=/nonexistent::/etc/passwd:$PATH run -0 "$ktask" run script ran
	[ "$output" = "script ran" ]
	PATH= run -0 ./ktask run script ran
	[ "$output" = "script ran" ]
	env -u PATH ./ktask run true
}

# Each would cost every start a mapping, and a page.
@test "the launcher has no writable memory but its stack" {
	command -v readelf >/dev/null || skip "no readelf"
	no_filter
	[ "$(readelf -lW "$ktask" | grep -c '^ *LOAD')" = 1 ]
}

# What /proc has for a process is set up when it is first asked for.
@test "the launcher asks /proc for its place only where its name does not say it" {
	no_filter
	command -v strace >/dev/null || skip "no strace"
	strace -o /dev/null true || skip "strace may not trace"
	local dir=$BATS_TEST_TMPDIR/whole name
	mkdir -p "$dir/bin"
	cp "$ktask" "$build/libktask-preload.so" "$dir/bin"
	ln -s whole/bin/ktask "$BATS_TEST_TMPDIR/linked"
	ln -s whole/bin "$BATS_TEST_TMPDIR/directory"
	cd "$dir"
	for name in "$dir/bin/ktask" bin/ktask "$BATS_TEST_TMPDIR/linked" \
		"$BATS_TEST_TMPDIR/directory/ktask"; do
		run -0 strace -s 200 -e trace=readlink,readlinkat \
			-o "$BATS_TEST_TMPDIR/trace" "$name" run sh -c 'echo "$LD_PRELOAD"'
		echo "$name: $output"
		[ "$output" -ef "$dir/bin/libktask-preload.so" ]
		run grep -c '"/proc/' "$BATS_TEST_TMPDIR/trace"
		case $name in
		bin/ktask | */linked) [ "$output" = 1 ] ;;
		*) [ "$output" = 0 ] ;;
		esac
	done
}

# A name that a descriptor gives it means nothing to the command's children.
@test "a launcher that is started by its descriptor names no descriptor" {
	no_filter
	command -v perl >/dev/null || skip "no perl"
	run -0 perl -e 'open(my $file, "<", $ARGV[0]); $^F = 1000;
		open(my $kept, "<&", $file);
		exec { "/dev/fd/" . fileno($kept) } "ktask", "run", "sh", "-c",
			"echo \"\$LD_PRELOAD\""' "$ktask"
	echo "$output"
	[ "$output" -ef "$build/libktask-preload.so" ]
	[[ $output != /dev/* ]]
}

# Below /proc the same name means another directory, or none, to each process.
@test "a launcher that is started below /proc names a path that holds for all" {
	no_filter
	local dir=$BATS_TEST_TMPDIR/whole name
	mkdir "$dir"
	cp "$ktask" "$build/libktask-preload.so" "$dir"
	cd "$dir"
	for name in /proc/self/cwd/ktask "/proc/$$/cwd/ktask" \
		//proc/self/cwd/ktask /./proc/self/cwd/ktask \
		"/proc/$$/root$dir/ktask"; do
		run -0 "$name" run sh -c 'echo "$LD_PRELOAD"'
		echo "$name: $output"
		[ "$output" -ef "$dir/libktask-preload.so" ]
		[[ $output != *proc* ]]
	done
}

@test "without the rest of it, only that is said" {
	no_filter
	cp "$ktask" "$BATS_TEST_TMPDIR/ktask"
	[ ! -e /usr/local/lib/ktask/ktask-commands ] || skip "one is installed"
	says 1 "starting ktask-commands: neither" "$BATS_TEST_TMPDIR/ktask" topo
	says 1 "starting ktask-commands: neither" "$BATS_TEST_TMPDIR/ktask" run true
}

@test "a shim that is missing is told, and the command not run" {
	cp "$ktask" "$build/ktask-commands" "$BATS_TEST_TMPDIR"
	[ ! -e /usr/local/lib/ktask/libktask-preload.so ] ||
		skip "one is installed"
	says 1 "finding libktask-preload.so" \
		"$BATS_TEST_TMPDIR/ktask" run touch "$BATS_TEST_TMPDIR/ran"
	[ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "an installed command finds its parts in ../lib/ktask" {
	mkdir -p "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/lib/ktask"
	cp "$ktask" "$BATS_TEST_TMPDIR/bin"
	cp "$build/libktask-preload.so" "$build/ktask-commands" \
		"$BATS_TEST_TMPDIR/lib/ktask"
	for option in --ahead=on --; do
		run -0 --separate-stderr "$BATS_TEST_TMPDIR/bin/ktask" run \
			"$option" sh -c 'echo "$LD_PRELOAD"'
		[[ $output == */lib/ktask/libktask-preload.so ]]
		[ -z "$stderr" ]
	done
}

@test "a path that the loader would split is refused" {
	mkdir "$BATS_TEST_TMPDIR/a b"
	cp "$ktask" "$build/ktask-commands" "$build/libktask-preload.so" \
		"$BATS_TEST_TMPDIR/a b"
	says 1 "no path with a colon or a space" \
		"$BATS_TEST_TMPDIR/a b/ktask" run true
}

@test "where paths are long the command is started all the same" {
	deep=$BATS_TEST_TMPDIR/$(printf '%0200d/' 1 2 3)
	mkdir -p "$deep"
	cp "$ktask" "$build/ktask-commands" "$build/libktask-preload.so" "$deep"
	printf '#!/bin/sh\necho "$LD_PRELOAD"\n' >"$deep/say"
	chmod +x "$deep/say"
	[ "$("$deep/ktask" run "$deep/say")" = "${deep}libktask-preload.so" ]
	[[ "$(PATH="$deep:$PATH" "$ktask" run say)" = *libktask-preload.so ]]
}
