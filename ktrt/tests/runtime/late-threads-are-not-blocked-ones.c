/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Without UMT a core gets another thread if all its workers are blocked.  One
 * that was made and that the kernel has not run yet is not, however long that
 * takes, nor does one that is gone count.
 */
#include "ktest.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/rt.h"

static struct worker *workers[2];
static struct core cores[2];

static void begin(void)
{
	memset(&rt, 0, sizeof(rt));
	pthread_mutex_init(&rt.pool_lock, NULL);
	pool_init(&rt.tasks, sizeof(struct ktrt_task));
	pool_init(&rt.smalls, 64);
	rt.workers = workers;
	rt.nr_slots = 2;
	rt.slots_per_cache = 2;
	rt.loaded = aligned_alloc(CACHE_LINE, mask_bytes(2));
	assert_non_null(rt.loaded);
	memset(rt.loaded, 0, mask_bytes(2));
}

static void end(void)
{
	rt.workers = workers;
	worker_free_all();
	memset(workers, 0, sizeof(workers));
	pool_destroy(&rt.tasks);
	pool_destroy(&rt.smalls);
	pthread_mutex_destroy(&rt.pool_lock);
	free(rt.loaded);
	memset(&rt, 0, sizeof(rt));
}

static void late_ones(void **state)
{
	struct worker *w;

	begin();
	w = worker_new(0);
	assert_non_null(w);
	assert_true(worker_all_blocked(&cores[0]));
	w->core = &cores[0];
	assert_false(worker_all_blocked(&cores[0]));
	assert_true(worker_all_blocked(&cores[1]));
	/* This thread runs. */
	w->tid = (pid_t)syscall(SYS_gettid);
	assert_false(worker_all_blocked(&cores[0]));
	worker_retire(w);
	assert_true(worker_all_blocked(&cores[0]));
	end();
}

KTEST_MAIN(KTEST(late_ones))
