/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * System calls on memory policy, which libnuma makes by syscall(): all are left
 * to the kernel.  The shim counts large ones, and ends a prefault job before
 * the policy of its mapping changes.
 *
 * Two threads with a half of the arrays of move_pages each gained nothing that
 * could be shown: in a guest with two nodes (emulated, Linux 6.12, 96 MiB of 4
 * KiB pages, beside other work, twice 7 rounds) one call took 0.78 and 1.35 s,
 * halves 0.84 and 1.10, parts of 512 pages 1.14 and 1.60.  Each call first
 * empties the page lists of all CPUs, and the halves meet in the lists of the
 * nodes.  The result would not be the same either: the plain call stops where a
 * page stays, and writes no status of those behind it.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "raw.h"
#include "preload/shim.h"
#include "util/scoped.h"

#ifdef SHIM_RAW

void shim_policy_call(long number, const long *args)
{
	size_t len = (size_t)args[1];
	keep_errno();

	if (number == SYS_mbind && shim_prefaults)
		shim_prefault_stop((const void *)args[0], len, false);
	if (number == SYS_mbind && shim_ahead_watches())
		shim_ahead_stop((const void *)args[0], len, true);
	if (number == SYS_mbind)
		SHIM_LEFT(LEFT_MBIND, len);
	if (number == SYS_move_pages && len < SIZE_MAX / 4096)
		SHIM_LEFT(LEFT_MOVE_PAGES, len * (size_t)sysconf(_SC_PAGESIZE));
}

#endif
