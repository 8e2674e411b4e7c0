#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Calls that register memory with a device do as without the shim, and the memory was
# made present before.  Only io_uring is there: VFIO and iommufd are asked for on
# /dev/null, and libibverbs is a stand-in that says how much it finds present.

load shim.bash

# libibverbs.so.1 and liburing as far as they are used here, and a plugin that needs it.
make_verbs() {
	cd "$BATS_TEST_TMPDIR"
	cat >verbs.c <<-'C'
		#define _GNU_SOURCE
		#include <errno.h>
		#include <stdint.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <sys/uio.h>

		struct ibv_mr;
		struct ibv_pd;

		static void tell_present(char *addr, size_t len)
		{
			unsigned char there[65536];
			size_t nr = 0;
			FILE *out = fopen(getenv("FOUND"), "a");

			if (!mincore(addr, len, there))
				for (size_t i = 0; i < len / 4096; i++)
					nr += there[i] & 1;
			fprintf(out, "%zu of %zu\n", nr, len / 4096);
			fclose(out);
		}

		int io_uring_register_buffers(void *ring, const struct iovec *buffers,
					      unsigned nr)
		{
			tell_present(buffers->iov_base, nr * buffers->iov_len);
			return ring ? 0 : -EINVAL;
		}

		struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
					  int access)
		{
			int saved_errno = errno;

			tell_present(addr, len);
			errno = saved_errno;
			if (access & 0x20) {
				errno = EINVAL;
				return NULL;
			}
			for (size_t pos = 0; pos < len && !(access & 0x40); pos += 4096)
				((volatile char *)addr)[pos] = 0;
			return (struct ibv_mr *)pd;
		}
	C
	cat >plugin.c <<-'C'
		#include <stddef.h>
		struct ibv_mr *ibv_reg_mr(void *pd, void *addr, size_t len, int access);
		struct ibv_mr *plugin_reg_mr(void *pd, void *addr, size_t len, int access)
		{
			return ibv_reg_mr(pd, addr, len, access);
		}
	C
	"${CC:-cc}" -shared -fPIC -Wl,-soname,libibverbs.so.1 -o libibverbs.so.1 verbs.c
	"${CC:-cc}" -shared -fPIC -Wl,-rpath,"$PWD" -o plugin.so plugin.c ./libibverbs.so.1
	export FOUND=$PWD/found
	cd "$OLDPWD"
}

# For programs that are not linked with it.
preloads_verbs() {
	plain() { env LD_PRELOAD="$BATS_TEST_TMPDIR/libibverbs.so.1" "$@"; }
	shimmed() {
		env LD_PRELOAD="$SHIM:$BATS_TEST_TMPDIR/libibverbs.so.1" \
			KTASK_RUN_REPORT="$REPORT" "$@"
	}
}

# What a ring has pinned is given back some time after it was closed.
has_uring() {
	plain "$PROGRAMS/register-cases" uring >/dev/null || skip "no io_uring"
}

@test "buffers of an io_uring are registered as without the shim" {
	has_uring
	[ "$(id -u)" = 0 ] || [ "$(ulimit -l)" = unlimited ] ||
		skip "little may be locked"
	same_output "$PROGRAMS/register-cases" uring
	cat "$REPORT"
	# Anonymous, shared, in parts twice, tagged, memfd; kernels differ on files.
	grep '^ktask: register: [67] calls, ' "$REPORT" |
		grep -vq 'left to the kernel'
	grep -q '^ktask: register: .* left to the kernel, because it is present' "$REPORT"
}

@test "an io_uring with too little memory to lock refuses as without the shim" {
	has_uring
	cat >"$BATS_TEST_TMPDIR/limited" <<-'END'
		#!/bin/bash
		ulimit -l 1024
		[ "$(id -u)" != 0 ] || set -- setpriv --bounding-set -ipc_lock \
			--inh-caps -ipc_lock "$@"
		exec "$@"
	END
	chmod +x "$BATS_TEST_TMPDIR/limited"
	same_output "$BATS_TEST_TMPDIR/limited" "$PROGRAMS/register-cases" uring
	grep '^anonymous: rc=-1 errno=ENOMEM' "$BATS_TEST_TMPDIR/shimmed"
	cat "$REPORT"
	grep -q '^ktask: register: .* left to the kernel, because not all of it' "$REPORT"
	! grep '^ktask: register: [0-9]* calls, ' "$REPORT" || false
}

@test "requests of an IOMMU are refused as without the shim" {
	same_output "$PROGRAMS/register-cases" requests
	# What is asked for again is there already.
	grep -q '^ktask: register: 2 calls, 16777216 bytes' "$REPORT"
}

@test "memory regions find their memory present" {
	make_verbs
	preloads_verbs
	same_output "$PROGRAMS/register-cases" verbs
	cat "$FOUND" "$REPORT"
	# Without the shim nothing is; with it, but for what is registered on demand.
	[ "$(grep -c '^0 of 2048$' "$FOUND")" -eq 5 ]
	[ "$(grep -c '^2048 of 2048$' "$FOUND")" -eq 3 ]
}

@test "buffers of liburing are found present" {
	make_verbs
	preloads_verbs
	same_output "$PROGRAMS/register-cases" liburing
	[ "$(grep -c '^2048 of 2048$' "$FOUND")" -eq 1 ]
	[ "$(wc -l <"$FOUND")" -eq 2 ]
}

@test "a plugin that brings its library along finds it" {
	make_verbs
	same_output "$PROGRAMS/register-cases" plugin "$BATS_TEST_TMPDIR/plugin.so"
	[ "$(grep -c '^2048 of 2048$' "$FOUND")" -eq 3 ]
}

@test "a function that nobody has is refused" {
	run shimmed "$PROGRAMS/register-cases" verbs
	[ "$status" -eq 0 ]
	[[ "$output" == *ENOSYS* ]]
}

@test "only what is named is taken" {
	KTASK_RUN_OPS=mlock shimmed "$PROGRAMS/register-cases" requests
	nothing_taken
	"$KTASK_BUILD/ktask" run --ops register --dry-run \
		"$PROGRAMS/register-cases" requests 2>&1 >/dev/null |
		grep -q '^ktask: would do register of 8.0 MiB'
}
