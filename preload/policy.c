/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * mbind() that moves pages, as libnuma asks for it, by syscall().
 *
 * The policy is set first, by a call that moves nothing and says whether the
 * kernel allows it.  Then the pages are moved in parallel, and then the call is
 * made as it is: it finds them there, moves what is left, and decides.
 *
 * Taken is what has one meaning only: memory bound to a single node, pages that
 * are this process's alone, errors not asked for (MPOL_MF_STRICT).  On machines
 * with one node there is nothing to move, and looking costs 60 ms a GiB: taken
 * there only by name (`--ops mbind`), for tests.
 *
 * Left to the kernel: migrate_pages, and move_pages.  Two threads with a half of
 * its arrays each gained nothing that could be shown: in a guest with two nodes
 * (emulated, Linux 6.12, 96 MiB of 4 KiB pages, beside other work, twice 7 rounds)
 * one call took 0.78 and 1.35 s, halves 0.84 and 1.10, parts of 512 pages 1.14
 * and 1.60, and at the least 0.63 and 0.72, 0.75 and 0.72, 1.11 and 0.96.  Each
 * call first empties the lists of pages of all CPUs, and the halves meet in the
 * nodes' lists.  Nor would it be the same: the plain call stops where a page
 * stays, tells how many it left, and writes no status of those around it.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "raw.h"
#include "shim.h"

#define NODES_MAX 1024
#define WORD_BITS (sizeof(unsigned long) * 8)
#define WORDS (NODES_MAX / WORD_BITS)

#ifdef SHIM_RAW

static unsigned nr_bits(const unsigned long *mask)
{
	unsigned nr = 0;

	for (size_t i = 0; i < WORDS; i++)
		nr += (unsigned)__builtin_popcountl(mask[i]);
	return nr;
}

static bool several_nodes(void)
{
	unsigned long mask[WORDS] = { 0 };
	int mode;

	return !syscall(SYS_get_mempolicy, &mode, mask,
			(unsigned long)NODES_MAX, NULL, MPOL_F_MEMS_ALLOWED) &&
	       nr_bits(mask) > 1;
}

/* The kernel reads one bit less than it is told. */
static bool read_mask(const long *args, unsigned long *mask)
{
	unsigned long nr = (unsigned long)args[4] - 1;
	size_t bytes = (nr + WORD_BITS - 1) / WORD_BITS * sizeof(*mask);
	struct iovec local = { mask, bytes };
	struct iovec remote = { (void *)args[3], bytes };

	if (!args[4] || !nr || nr > NODES_MAX ||
	    process_vm_readv(getpid(), &local, 1, &remote, 1, 0) !=
		    (ssize_t)bytes)
		return false;
	if (nr % WORD_BITS)
		mask[nr / WORD_BITS] &= (1ul << nr % WORD_BITS) - 1;
	return true;
}

static bool set_policy(const long *args)
{
	long still[6] = { args[0], args[1], args[2], args[3], args[4], 0 };

	return raw_syscall(SYS_mbind, still) == 0;
}

static bool takes(const long *args, unsigned long *mask)
{
	return args[2] == MPOL_BIND && args[5] == MPOL_MF_MOVE &&
	       (shim_named(SHIM_MBIND) || several_nodes()) &&
	       read_mask(args, mask) && nr_bits(mask) == 1;
}

static void prepare(const long *args)
{
	unsigned long mask[WORDS] = { 0 };
	size_t len = (size_t)args[1];

	if (!takes(args, mask))
		shim_leave(LEFT_MBIND, len);
	else if (shim_takes(SHIM_MBIND, len) && set_policy(args))
		shim_migrate((void *)args[0], len, mask, NODES_MAX);
}

void shim_policy_call(long number, const long *args)
{
	size_t len = (size_t)args[1];
	int saved_errno = errno;

	if (number == SYS_mbind && shim_prefaults)
		shim_prefault_stop((const void *)args[0], len, false);
	if (number == SYS_mbind && SHIM_WANTS(SHIM_MBIND, len))
		prepare(args);
	if (number == SYS_move_pages && len < SIZE_MAX / 4096)
		SHIM_LEFT(LEFT_MOVE_PAGES, len * (size_t)sysconf(_SC_PAGESIZE));
	errno = saved_errno;
}

#endif
