/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * madvise: populating and discarding are taken.
 *
 * Left to the kernel, because several threads were slower or had nothing to
 * do (2 CPUs, Linux 6.18): MADV_COLLAPSE (2 GiB: 0.53 s alone, 1.12 s by two,
 * which wait for one another's lock of the address space), MADV_WILLNEED
 * (1 GiB of a file: 1.3 ms; it only starts the reading), MADV_REMOVE (under the
 * file's lock).
 */
#include <sys/mman.h>

#include <ktask/ops.h>

#include "shim.h"

static bool populate(void *addr, size_t len, int advice)
{
	return real_knows_advice(advice) &&
	       shim_populate(SHIM_MADVISE, addr, len,
			     advice == MADV_POPULATE_READ ? KTASK_POPULATE_READ
							  : 0);
}

/* Discarding twice is discarding once: on failure the plain call decides. */
static bool take(void *addr, size_t len, int advice)
{
	switch (advice) {
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
		return populate(addr, len, advice);
	case MADV_DONTNEED:
		return shim_discard(addr, len, 0);
	case MADV_DONTNEED_LOCKED:
		return shim_discard(addr, len, KTASK_DISCARD_LOCKED);
	default:
		return shim_discard(addr, len, KTASK_DISCARD_FREE);
	}
}

static bool takes(int advice)
{
	return advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE ||
	       advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED ||
	       advice == MADV_FREE;
}

KTASK_API int madvise(void *addr, size_t len, int advice)
{
	if (takes(advice) && SHIM_WANTS(SHIM_MADVISE, len) &&
	    shim_takes(SHIM_MADVISE, len) && take(addr, len, advice))
		return 0;
	return real_madvise(addr, len, advice);
}
