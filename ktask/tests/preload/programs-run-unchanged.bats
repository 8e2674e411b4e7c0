#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Everyday programs, which never make a large call, print and return the same
# and take nothing.

load shim.bash

unchanged() {
	same_output bash -c "$1" 2>&1
	# Large is what they have at their end, if anything.
	local mere='^ktask: exit: |^ktask: run: took over (nothing|the end)'
	! grep -vE "$mere" "$REPORT" || false
}

@test "coreutils print the same" {
	unchanged 'ls -la /usr/bin | sort -k9 | sha256sum; seq 200000 | sort -R --random-source=/bin/ls | md5sum; od -An -tx1 -N64 /bin/ls; wc /etc/passwd; date -u -d @0'
}

@test "pipes, subshells and exit codes are the same" {
	unchanged '(false; echo $?); (exit 7); echo $?; yes | head -3; cat /nonexistent; echo $?; sleep 9 & kill -9 $!; wait $!; echo $?'
}

@test "an interpreter with a large string prints the same" {
	command -v perl >/dev/null || skip "no perl"
	unchanged "perl -e 'print length(q(a) x (48 << 20))'"
}

@test "a program that gains privileges ignores the shim or works" {
	su=$(command -v su) || skip "no su"
	run env LD_PRELOAD="$SHIM" "$su" --version
	[ "$status" -eq 0 ]
}
