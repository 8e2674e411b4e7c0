/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * System calls on memory policy, which libnuma makes by syscall(): all are left
 * to the kernel.  The shim counts large ones, and ends a prefault job before
 * the policy of its mapping changes.  Nothing is made ahead where a policy holds.
 *
 * Dividing move_pages() between two threads gained nothing.  It was measured twice in a
 * guest with two nodes (emulated, Linux 6.12, 96 MiB of 4 KiB pages, beside other work, 7
 * rounds).  One call took 0.78 and 1.35 s, two halves 0.84 and 1.10 s, parts of 512 pages
 * 1.14 and 1.60 s.  Each call first drains the page lists of all CPUs, and the threads
 * contend for the lists of the nodes.  The result would differ, too: the plain call stops
 * at a page that cannot be moved, and writes no status for the pages after it.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/shim.h"
#include "util/raw_syscalls.h"
#include "util/scoped.h"

#ifdef SHIM_RAW

void shim_policy_call(long number, const long *args)
{
	size_t len = (size_t)args[1];
	keep_errno();

	if (number == SYS_set_mempolicy)
		shim_ahead_policy((int)args[0]);
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
