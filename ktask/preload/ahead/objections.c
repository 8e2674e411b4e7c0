/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the program says of all its memory, or of what a thread touches, so that nothing
 * may be made ahead: memory policies of threads, and locks that take each page when it is
 * touched.  What it says of single ranges comes by shim_ahead_stop().
 *
 * Helpers have no policy.  Which thread will touch a mapping is not known.  So nothing is
 * made in the process as long as one of its threads has a policy.
 *
 * Behaves badly: a thread that ends with a policy, or makes others, which have the same,
 * is counted for ever.
 *
 * Locking: there is no lock.  Whoever adds a mapping first adds it and then asks for
 * objections.  Whoever objects first says so here and then stops all mappings.
 */
#include <sys/mman.h>

#include "preload/ahead/ahead.h"
#include "preload/shim.h"
#include "util/scoped.h"

/* set_mempolicy(2): flags beside the mode, and the mode of threads without a policy. */
#define MODE_FLAGS 0xe000
#define MODE_DEFAULT 0

static atomic_uint nr_policies;
static __thread bool has_policy, had_policy;
/* mlockall(MCL_FUTURE | MCL_ONFAULT) */
static atomic_bool is_locked_later;

enum shim_why ahead_objection(void)
{
	if (atomic_load(&is_locked_later))
		return WHY_AHEAD_LOCKED;
	return atomic_load(&nr_policies) ? WHY_AHEAD_POLICY : SHIM_NR_WHY;
}

/* A child of vfork() has its own policy. */
static bool is_own_call(void)
{
	keep_errno();

	return shim_ahead_min_bytes != SIZE_MAX && shim_filter_allows() &&
	       shim_is_ours();
}

static void count_policy(bool has)
{
	if (has && !has_policy)
		atomic_fetch_add(&nr_policies, 1);
	else if (!has && has_policy)
		atomic_fetch_sub(&nr_policies, 1);
	has_policy = has;
}

void shim_ahead_policy(int mode)
{
	bool has = (mode & ~MODE_FLAGS) != MODE_DEFAULT;

	if (!is_own_call())
		return;
	had_policy = has_policy;
	count_policy(has);
	if (has)
		large_mappings_stop_all();
}

void shim_ahead_policy_refused(void)
{
	if (is_own_call())
		count_policy(had_policy);
}

void shim_ahead_new_thread(void)
{
	if (has_policy && !shim_busy())
		atomic_fetch_add(&nr_policies, 1);
}

void shim_ahead_lock_on_fault(const void *addr, size_t len)
{
	if (shim_ahead_watches())
		shim_ahead_stop(addr, len, true);
}

bool shim_ahead_lock_all(int flags)
{
	const int later = MCL_FUTURE | MCL_ONFAULT;
	const int now = MCL_CURRENT | MCL_ONFAULT;
	bool before =
		atomic_exchange(&is_locked_later, (flags & later) == later);

	if ((flags & now) == now)
		large_mappings_stop_all();
	return before;
}

void shim_ahead_lock_refused(bool before)
{
	atomic_store(&is_locked_later, before);
}

void ahead_forget_objections(void)
{
	atomic_store(&nr_policies, has_policy);
	atomic_store(&is_locked_later, false);
}
