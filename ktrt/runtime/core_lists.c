/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Lists of workers that sleep.  Does not own when they sleep and who wakes them (park.c).
 *
 * Locking: core_lists.h.
 */
#include "core_lists.h"

/* ---- the pool ---- */

static void pool_put_worker(struct worker *w)
{
	mutex_take(&rt.pool_lock, RANK_POOL);
	w->pooled = true;
	w->link = rt.pool;
	rt.pool = w;
	mutex_drop(&rt.pool_lock, RANK_POOL);
}

struct worker *pool_take_worker(void)
{
	struct worker *w;

	mutex_take(&rt.pool_lock, RANK_POOL);
	w = rt.pool;
	if (w) {
		rt.pool = w->link;
		w->pooled = false;
	}
	mutex_drop(&rt.pool_lock, RANK_POOL);
	return w;
}

static bool pool_remove_worker(struct worker *w)
{
	struct worker **at;
	bool was;

	mutex_take(&rt.pool_lock, RANK_POOL);
	was = w->pooled;
	if (was) {
		for (at = &rt.pool; *at != w; at = &(*at)->link)
			;
		*at = w->link;
		w->pooled = false;
	}
	mutex_drop(&rt.pool_lock, RANK_POOL);
	return was;
}

/* ---- idle ones ---- */

WAKE_PATH void core_list_idle(struct core *core, struct worker *w)
{
	core_assert_locked(core);
	at_poke(&w->wake, (uint32_t)SIGNAL_NONE);
	if (core->parked) {
		pool_put_worker(w);
		return;
	}
	w->listed = true;
	w->link = NULL;
	core->parked = w;
}

WAKE_PATH struct worker *core_take_parked(struct core *core)
{
	struct worker *w = core->parked;

	core_assert_locked(core);
	if (!w)
		return NULL;
	core->parked = NULL;
	w->listed = false;
	return w;
}

WAKE_PATH struct worker *core_take_idle(struct core *core)
{
	struct worker *w = core_take_parked(core);

	return w ? w : pool_take_worker();
}

bool core_unlist(struct core *core, struct worker *w)
{
	core_assert_locked(core);
	if (!w->listed)
		return pool_remove_worker(w);
	core_take_parked(core);
	return true;
}

/* ---- those in the middle of a task ---- */

void core_list_suspended(struct core *core, struct worker *w)
{
	core_assert_locked(core);
	at_poke(&w->wake, (uint32_t)SIGNAL_NONE);
	w->link = NULL;
	*core->suspended_end = w;
	core->suspended_end = &w->link;
	at_poke(&core->nr_suspended, core->nr_suspended + 1);
}

WAKE_PATH struct worker *core_take_suspended(struct core *core)
{
	struct worker *w = core->suspended;

	core_assert_locked(core);
	if (!w)
		return NULL;
	core->suspended = w->link;
	if (!w->link)
		core->suspended_end = &core->suspended;
	at_poke(&core->nr_suspended, core->nr_suspended - 1);
	return w;
}
