/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * madvise: populating and discarding are taken.
 *
 * Left to the kernel, because several threads were slower or had nothing to
 * do (2 CPUs, Linux 6.18): MADV_COLLAPSE (2 GiB: 0.53 s alone, 1.12 s by two,
 * which contend for the lock of the address space), MADV_WILLNEED
 * (1 GiB of a file: 1.3 ms; it only starts the reading), MADV_REMOVE (1 GiB of
 * a memory file: 142 ms alone, 154 by two, under the file's lock), MADV_PAGEOUT
 * (1 GiB: 84 ms alone, 190 by two).
 */
#include <errno.h>
#include <sys/mman.h>

#include <ktask/ops.h>

#include "preload/shim.h"

bool shim_is_discard(int advice, unsigned *flags)
{
	*flags = advice == MADV_FREE		  ? KTASK_DISCARD_FREE
		 : advice == MADV_DONTNEED_LOCKED ? KTASK_DISCARD_LOCKED
						  : 0;
	return *flags || advice == MADV_DONTNEED;
}

static bool is_populate(int advice)
{
	return advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE;
}

/* Discarding twice is discarding once: on failure the plain call decides. */
static bool take_advice(void *addr, size_t len, int advice)
{
	unsigned flags;

	if (shim_is_discard(advice, &flags))
		return shim_discard(addr, len, flags);
	flags = advice == MADV_POPULATE_READ ? KTASK_POPULATE_READ : 0;
	return real_knows_advice(advice) &&
	       shim_populate(SHIM_MADVISE, addr, len, flags);
}

static void count_left(int advice, size_t len)
{
	static const struct {
		int advice;
		enum shim_left left;
	} counted[] = {
		{ MADV_COLLAPSE, LEFT_COLLAPSE },
		{ MADV_WILLNEED, LEFT_WILLNEED },
		{ MADV_REMOVE, LEFT_REMOVE },
		{ MADV_PAGEOUT, LEFT_PAGEOUT },
	};

	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
		if (counted[i].advice == advice)
			shim_leave(counted[i].left, len);
}

/* Advice that changes what memory is made of leaves it to be made. */
static bool goes_on(int advice)
{
	return advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE;
}

/* Before the call: what the program says comes last, and counts. */
static void tell_ahead(const void *addr, size_t len, int advice,
		       bool takes_away)
{
	if (takes_away && shim_ahead_watches())
		shim_ahead_stop(addr, len, true);
	else if (goes_on(advice))
		shim_ahead_advised(addr, len, advice == MADV_HUGEPAGE);
}

/* The kernel collapses nothing where huge pages are advised against, as by the shim where
 * it took its own advice back. */
static int collapse_range(void *addr, size_t len)
{
	int saved_errno = errno;
	int rc = real_madvise(addr, len, MADV_COLLAPSE);

	if (!rc || errno != EINVAL || !shim_ahead_lift(addr, len, true))
		return rc;
	errno = saved_errno;
	rc = real_madvise(addr, len, MADV_COLLAPSE);
	shim_ahead_lift(addr, len, false);
	return rc;
}

KTASK_API int madvise(void *addr, size_t len, int advice)
{
	unsigned flags;
	bool discard = shim_is_discard(advice, &flags);
	bool populate = is_populate(advice), takes;
	bool takes_away = discard || advice == MADV_REMOVE;
	int rc;

	if (shim_prefaults && takes_away)
		shim_prefault_stop(addr, len, false);
	if (advice == MADV_REMOVE)
		shim_ahead_remove(addr, len);
	if (advice == MADV_DONTFORK)
		shim_ahead_not_inherited(addr, len);
	tell_ahead(addr, len, advice, takes_away);
	if (shim_prefaults && goes_on(advice)) {
		rc = real_madvise(addr, len, advice);
		shim_prefault_stop(addr, len, true);
		return rc;
	}
	if (len >= shim_min_bytes && !discard && !populate)
		count_left(advice, len);
	if (discard)
		takes = SHIM_WANTS_RELEASE(SHIM_MADVISE, addr, len) &&
			shim_takes_release(SHIM_MADVISE, addr, len);
	else
		takes = populate && SHIM_WANTS(SHIM_MADVISE, len) &&
			shim_takes(SHIM_MADVISE, len);
	if (takes && take_advice(addr, len, advice))
		return 0;
	return advice == MADV_COLLAPSE ? collapse_range(addr, len)
				       : real_madvise(addr, len, advice);
}
