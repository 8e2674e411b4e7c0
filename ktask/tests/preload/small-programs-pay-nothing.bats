#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A program without large calls gets no thread, no file and no memory from the
# shim, beyond the shim itself.

load shim.bash

@test "no thread, no descriptor, also where it calls" {
	for one in plain shimmed; do
		unset KTASK_RUN_MIN
		$one perl -e 'opendir(my $d, "/proc/self/fd");
			print scalar(() = readdir $d), "\n";
			$x = "x" x (8 << 20); undef $x;
			open(my $s, "<", "/proc/self/status");
			print grep { /^Threads/ } <$s>' >"$BATS_TEST_TMPDIR/$one"
	done
	grep -q "^Threads:.1$" "$BATS_TEST_TMPDIR/plain"
	diff "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/shimmed"
}

@test "no file is opened but the shim itself" {
	command -v strace >/dev/null || skip "no strace"
	strace -o "$BATS_TEST_TMPDIR/trace" true || skip "strace may not trace"
	run strace -f -e trace=open,openat,clone,clone3,fork,vfork,prctl \
		-E LD_PRELOAD="$SHIM" -o "$BATS_TEST_TMPDIR/trace" true
	[ "$status" -eq 0 ]
	grep -q "$SHIM" "$BATS_TEST_TMPDIR/trace"
	# At the end it is asked whether a filter would mind.
	run grep -cvE 'preload\.so|ld\.so\.cache|libc\.so|^[0-9]+ +\+\+\+|prctl\(PR_GET_SECCOMP\)' \
		"$BATS_TEST_TMPDIR/trace"
	cat "$BATS_TEST_TMPDIR/trace"
	[ "$output" = 0 ]
}

@test "the shim is loaded as two mappings, one of them writable" {
	command -v readelf >/dev/null || skip "no readelf"
	[ "$(readelf -lW "$SHIM" | grep -c '^ *LOAD')" = 2 ]
}

@test "small variables of the shim share a few pages" {
	command -v nm >/dev/null || skip "no nm"
	nm "$SHIM" | grep -q . || skip "the shim has no symbols"
	ld --version | grep -q "GNU ld" || skip "other linkers do not sort sections"
	# Of less than 2 KiB.  Those of a thread have offsets for addresses.
	run perl -e 'my %page;
		for (`nm -S "$ARGV[0]"`) {
			next unless /^([0-9a-f]+) ([0-9a-f]+) [bB] /;
			my ($page, $bytes) = (hex($1) >> 12, hex($2));
			$page{$page}++ if $page && $bytes < 2048;
		}
		print scalar(keys %page), "\n"' "$SHIM"
	echo "$output pages"
	[ "$output" -ge 1 ]
	# What is left of the page that the loader writes anyway, and two more.
	[ "$output" -le 3 ]
}

@test "the page that the loader writes begins with what it writes" {
	command -v readelf >/dev/null || skip "no readelf"
	ld --version | grep -q "GNU ld" || skip "other linkers do not sort sections"
	readelf -SW "$SHIM" | grep -E ' INIT_ARRAY +[0-9a-f]+000 '
}

# no_gap FILE: the loader would call what is in it, which is zero.  The size is below 4096.
no_gap() {
	readelf -SW "$1" | grep -E ' INIT_ARRAY +[0-9a-f]+ [0-9a-f]+ 000[0-9a-f]{3} '
}

@test "the list of constructors has no gap" {
	command -v readelf >/dev/null || skip "no readelf"
	no_gap "$SHIM"
}

@test "it has none where a sanitizer of clang puts its own in front" {
	command -v readelf >/dev/null || skip "no readelf"
	command -v clang >/dev/null || skip "no clang"
	cd "$BATS_TEST_DIRNAME/../../.."
	local policy=ktask/preload/policy sanitizer file
	for sanitizer in address memory thread hwaddress; do
		clang -fsanitize=$sanitizer -x c -c -o "$BATS_TEST_TMPDIR/empty.o" /dev/null ||
			skip "clang has no $sanitizer sanitizer"
		for file in settings shim_config; do
			clang -w -fPIC -fsanitize=$sanitizer -D_GNU_SOURCE -Iktask/include \
				-Iktask -I. -c -o "$BATS_TEST_TMPDIR/$file.o" \
				"$policy/$file.c"
		done
		# Of what hwaddress compiles, ld cannot shorten each access.
		cc -shared -nostdlib -Wl,--no-relax -o "$BATS_TEST_TMPDIR/part.so" \
			"$BATS_TEST_TMPDIR"/{settings,shim_config}.o
		no_gap "$BATS_TEST_TMPDIR/part.so"
	done
}

# Each costs the loader several hundred instructions: 57 where all were looked up by
# name and functions of strings were called.
@test "few functions are looked up when a program starts" {
	LD_DEBUG=bindings LD_DEBUG_OUTPUT=$BATS_TEST_TMPDIR/debug \
		LD_PRELOAD=$SHIM KTASK_RUN_OPS=ahead "$(type -P true)"
	run grep -h "binding file $SHIM " "$BATS_TEST_TMPDIR"/debug.*
	echo "$output"
	[ "${#lines[@]}" -ge 1 ] || skip "the loader tells nothing"
	[ "${#lines[@]}" -le 30 ]
}

@test "another library behind the shim has the calls that the shim passes on" {
	command -v cc >/dev/null || skip "no compiler"
	cd "$BATS_TEST_TMPDIR"
	cat >other.c <<-'EOF'
	#define _GNU_SOURCE
	#include <dlfcn.h>
	#include <stdlib.h>
	#include <unistd.h>

	static void tell(const char *text)
	{
		if (write(1, text, 5) != 5)
			_exit(1);
	}
	int fork(void)
	{
		tell("fork\n");
		return ((int (*)(void))dlsym(RTLD_NEXT, "fork"))();
	}
	int execvp(const char *name, char *const *argv)
	{
		tell("exec\n");
		return ((int (*)(const char *, char *const *))
			dlsym(RTLD_NEXT, "execvp"))(name, argv);
	}
	void *memalign(size_t align, size_t size)
	{
		tell("line\n");
		return aligned_alloc(align, size);
	}
	EOF
	cat >program.c <<-'EOF'
	#define _GNU_SOURCE
	#include <malloc.h>
	#include <sys/wait.h>
	#include <unistd.h>

	int main(void)
	{
		char *words[] = { "true", NULL };

		if (!memalign(64, 64))
			return 1;
		if (!fork())
			execvp(words[0], words);
		return wait(NULL) < 0;
	}
	EOF
	cc -w -shared -fPIC -o other.so other.c -ldl
	# The older kind of table only, and none but that of other.so before it.
	echo "int nothing;" >old.c
	cc -shared -fPIC -Wl,--hash-style=sysv -o old.so old.c
	cc -w -O0 -fno-builtin -o program program.c
	for between in "" ":./old.so"; do
		run env LD_PRELOAD="$SHIM$between:./other.so" ./program
		echo "$between: $output"
		[ "$status" -eq 0 ]
		[ "$output" = $'line\nfork\nexec' ]
	done
}
