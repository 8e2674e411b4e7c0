/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A worker that left a core, as others are ready there, keeps them from doing the same
 * until it sleeps.  One whose thread has ended, and whose record another thread has,
 * does not.
 */
#include "ktest.h"

#include <string.h>

#include "runtime/rt.h"

static struct worker *workers[2];
static struct core core;
static struct umt_core counts[1];

static union mask_line *new_mask(void)
{
	union mask_line *mask = aligned_alloc(CACHE_LINE, mask_bytes(2));

	assert_non_null(mask);
	memset(mask, 0, mask_bytes(2));
	return mask;
}

/* Two workers are ready on the only core, and the runtime is about to end: so whoever
 * goes to sleep comes back. */
static void begin_runtime(void)
{
	memset(&rt, 0, sizeof(rt));
	pthread_mutex_init(&rt.pool_lock, NULL);
	pool_init(&rt.tasks, sizeof(struct ktrt_task));
	pool_init(&rt.smalls, 64);
	rt.workers = workers;
	rt.nr_slots = rt.slots_per_cache = 2;
	rt.loaded = new_mask();
	rt.idle = new_mask();
	rt.cores = &core;
	rt.nr_cores = 1;
	rt.counts = counts;
	rt.stop = 1;
	core.suspended_end = &core.suspended;
	core.active = 2;
	counts[0].ready = 2;
}

static void end_runtime(void)
{
	worker_free_all();
	pool_destroy(&rt.tasks);
	pool_destroy(&rt.smalls);
	pthread_mutex_destroy(&rt.pool_lock);
	free(rt.loaded);
	free(rt.idle);
	memset(&rt, 0, sizeof(rt));
}

static struct worker *worker_here(void)
{
	struct worker *w = worker_new(0);

	assert_non_null(w);
	w->core = &core;
	return w;
}

static void others_leave_after_it(void **state)
{
	struct worker *first, *second;

	begin_runtime();
	first = worker_here();
	second = worker_here();
	park_overloaded(first);
	assert_int_equal(first->counts.surrenders, 1);
	assert_ptr_equal(core.leaver, first);
	worker_retire(first);
	assert_ptr_equal(worker_here(), first);
	park_overloaded(second);
	assert_int_equal(second->counts.surrenders, 1);
	end_runtime();
}

KTEST_MAIN(KTEST(others_leave_after_it))
