/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * madvise: populating and discarding are taken.
 *
 * Left to the kernel, because several threads were slower or had nothing to
 * do (2 CPUs, Linux 6.18): MADV_COLLAPSE (2 GiB: 0.53 s alone, 1.12 s by two,
 * which wait for one another's lock of the address space), MADV_WILLNEED
 * (1 GiB of a file: 1.3 ms; it only starts the reading), MADV_REMOVE (1 GiB of
 * a memory file: 142 ms alone, 154 by two, under the file's lock), MADV_PAGEOUT
 * (1 GiB: 84 ms alone, 190 by two).
 */
#include <sys/mman.h>

#include <ktask/ops.h>

#include "preload/shim.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static bool populate_range(void *addr, size_t len, int advice)
{
	return real_knows_advice(advice) &&
	       shim_populate(SHIM_MADVISE, addr, len,
			     advice == MADV_POPULATE_READ ? KTASK_POPULATE_READ
							  : 0);
}

/* Discarding twice is discarding once: on failure the plain call decides. */
static bool take_advice(void *addr, size_t len, int advice)
{
	switch (advice) {
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
		return populate_range(addr, len, advice);
	case MADV_DONTNEED:
		return shim_discard(addr, len, 0);
	case MADV_DONTNEED_LOCKED:
		return shim_discard(addr, len, KTASK_DISCARD_LOCKED);
	default:
		return shim_discard(addr, len, KTASK_DISCARD_FREE);
	}
}

static bool can_take(int advice)
{
	return advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE ||
	       advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED ||
	       advice == MADV_FREE;
}

static void count_left(int advice, size_t len)
{
	switch (advice) {
	case MADV_COLLAPSE:
		shim_leave(LEFT_COLLAPSE, len);
		break;
	case MADV_WILLNEED:
		shim_leave(LEFT_WILLNEED, len);
		break;
	case MADV_REMOVE:
		shim_leave(LEFT_REMOVE, len);
		break;
	case MADV_PAGEOUT:
		shim_leave(LEFT_PAGEOUT, len);
		break;
	default:
		break;
	}
}

/* Advice that changes what memory is made of leaves it to be made. */
static bool goes_on(int advice)
{
	return advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE;
}

static bool is_discard(int advice)
{
	return advice == MADV_DONTNEED || advice == MADV_FREE ||
	       advice == MADV_REMOVE || advice == MADV_DONTNEED_LOCKED;
}

/* Before the call: what the program says comes last, and counts. */
static void tell_ahead(const void *addr, size_t len, int advice)
{
	if (is_discard(advice))
		shim_ahead_stop(addr, len, true);
	else if (goes_on(advice))
		shim_ahead_advised(addr, len, advice == MADV_HUGEPAGE);
}

KTASK_API int madvise(void *addr, size_t len, int advice)
{
	int rc;

	if (shim_prefaults && is_discard(advice))
		shim_prefault_stop(addr, len, false);
	if (shim_ahead_watches())
		tell_ahead(addr, len, advice);
	if (shim_prefaults && goes_on(advice)) {
		rc = real_madvise(addr, len, advice);
		shim_prefault_stop(addr, len, true);
		return rc;
	}
	if (len >= shim_min_bytes && !can_take(advice))
		count_left(advice, len);
	if (can_take(advice) && SHIM_WANTS(SHIM_MADVISE, len) &&
	    shim_takes(SHIM_MADVISE, len) && take_advice(addr, len, advice))
		return 0;
	return real_madvise(addr, len, advice);
}
