#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Return value, errno, resident pages, the kernel's account and the contents
# are the same with and without the shim, in good cases and bad; and the shim
# did take the calls that it should, else this would show nothing.

load shim.bash

@test "mmap behaves as the plain mmap" {
	same_output "$PROGRAMS/mmap-cases"
	# Without rights what is locked is refused.
	[ "$(taken mmap call)" -ge "$([ "$(id -u)" -eq 0 ] && echo 20 || echo 14)" ]
}

@test "madvise behaves as the plain madvise" {
	same_output "$PROGRAMS/madvise-cases"
	[ "$(taken madvise call)" -ge 20 ]
}

@test "madvise that fails is left to the kernel" {
	shimmed "$PROGRAMS/madvise-cases"
	[ "$(taken madvise "left to the kernel")" -ge 8 ]
}

@test "mlock behaves as the plain mlock" {
	same_output "$PROGRAMS/mlock-cases"
	# Without rights only the cases within the limit are tried.
	[ "$(taken mlock call)" -ge "$([ "$(id -u)" -eq 0 ] && echo 10 || echo 2)" ]
}

@test "the locking limit counts as without the shim" {
	shimmed "$PROGRAMS/mlock-cases" >"$BATS_TEST_TMPDIR/shimmed"
	grep '^just allowed: rc=0' "$BATS_TEST_TMPDIR/shimmed"
	grep '^a page too many: rc=-1 errno=ENOMEM' "$BATS_TEST_TMPDIR/shimmed"
	grep '^nothing allowed: rc=-1 errno=EPERM' "$BATS_TEST_TMPDIR/shimmed"
}

# With several nodes: tests/vm/user/shim-does-as-the-kernel-between-nodes.sh
@test "policies of memory behave as plain ones" {
	"$PROGRAMS/policy-cases" >/dev/null 2>&1 || skip "no memory policies"
	export KTASK_RUN_OPS=mmap,madvise,munmap
	same_output "$PROGRAMS/policy-cases"
}
