# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=sh
#
# For scripts of tests/vm/user: one program run twice in the guest, without and
# with the shim, and what both times came out compared.  The test sources this
# and ends with `finish`.

nr=0
name=
plain=
export KTASK_RUN_MIN=1048576

verdict() { # STATUS NAME
	nr=$((nr + 1))
	[ "$1" = 0 ] || printf 'not '
	echo "ok $nr - $2"
}

same() { # NAME COMMAND...
	name=$1
	shift
	plain=$*
	"$@" >/tmp/plain 2>&1
	echo "status $?" >>/tmp/plain
	compare "$@"
}

# The program of the last `same` again, with the shim set up otherwise: without the shim
# it would say the same, and is not run again.
same_again() { # NAME COMMAND...
	name=$1
	shift
	[ "$*" = "$plain" ] || {
		echo "same_again: '$*' is not what ran last: '$plain'" >&2
		exit 1
	}
	compare "$@"
}

compare() { # COMMAND...
	# Some of its processes are other users, and nobody writes for them.
	(umask 0 && : >/tmp/report)
	LD_PRELOAD=$KTASK_BUILD/libktask-preload.so \
		KTASK_RUN_REPORT=/tmp/report "$@" >/tmp/shimmed 2>&1
	echo "status $?" >>/tmp/shimmed
	diff /tmp/plain /tmp/shimmed >/tmp/diff &&
		[ "$(wc -l </tmp/plain)" -gt 9 ] &&
		grep -q '^status 0' /tmp/plain
	verdict $? "$name"
	while read -r line; do
		echo "# $line"
	done </tmp/diff
}

# Of the last run: calls of this kind were taken over.
takes() { # CALL
	grep -q "^ktask: $1: [1-9]" /tmp/report
	verdict $? "$name: $1 was taken over"
}

finish() {
	echo "1..$nr"
}
