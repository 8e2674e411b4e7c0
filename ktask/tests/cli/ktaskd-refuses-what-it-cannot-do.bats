#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# ktaskd says in one line why it does not begin, and its unit can be read by systemd.
# What it does when it begins is tested in guests, which have the module.

load helpers

setup() {
	ktaskd=$KTEST_BUILD/ktaskd
}

@test "help and version are for standard output" {
	run -0 --separate-stderr "$ktaskd" --help
	[[ $output == usage:* && -z $stderr ]]
	for option in all cgroup help name verbose version; do
		[[ $output == *"--$option"* ]]
	done
	run -0 --separate-stderr "$ktaskd" -V
	[[ $output == "ktaskd "* && -z $stderr ]]
}

@test "wrong usage is one line" {
	for line in "" --nosuch "--all x" --cgroup "--cgroup nosuch" "--name" ; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr timeout 300 "$ktaskd" $line
		echo "$line: $stderr"
		[[ -z $output && $stderr == "ktaskd: "* ]]
		[ "$(wc -l <<<"$stderr")" -eq 1 ]
	done
}

@test "an option is refused in the words of the other commands" {
	while IFS='|' read -r line why; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr timeout 300 "$ktaskd" $line
		[ "$stderr" = "ktaskd: $why" ]
	done <<-'END'
		--nosuch|unknown option '--nosuch'
		-x|unknown option '-x'
		--all=5|option '--all=5' takes no value
		-n|option '-n' needs a value
		--cgroup|option '--cgroup' needs a value
	END
}

@test "a name that no process can have is refused" {
	run -2 --separate-stderr timeout 300 "$ktaskd" --name sixteen-letters-
	[ "$stderr" = "ktaskd: option '-n': 'sixteen-letters-': File name too long" ]
}

@test "without the module it says so" {
	[ ! -e /dev/ktask ] || skip "the module is there"
	run -1 --separate-stderr timeout 300 "$ktaskd" --all
	[ "$stderr" = "ktaskd: using /dev/ktask: there is none: load the module ktask (modprobe ktask)" ]
}

@test "systemd understands every line of the unit" {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
	sed "s|@SBINDIR@|$KTEST_BUILD|" \
		"$BATS_TEST_DIRNAME/../../packaging/ktaskd.service.in" \
		>"$BATS_TEST_TMPDIR/ktaskd.service"
	run systemd-analyze --man=no verify "$BATS_TEST_TMPDIR/ktaskd.service"
	[[ $output != *"o such file or directory"* ]] || skip "$output"
	echo "$output"
	[[ $output != *ktaskd* ]]
}
