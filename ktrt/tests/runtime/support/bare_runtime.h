/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A runtime without threads: cores, queues, slots and memory for records are there, so
 * that a test may call a part of the runtime for workers of its own.
 */
#ifndef RUNTIME_TEST_BARE_RUNTIME_H
#define RUNTIME_TEST_BARE_RUNTIME_H

#include "ktest.h"

#include <string.h>

#include "runtime/rt.h"

/* bare_runtime_begin - with the cores of @cpus, for at most @max_threads */
static inline void bare_runtime_begin(const cpu_set_t *cpus, unsigned nr_cpus,
				      unsigned max_threads)
{
	memset(&rt, 0, sizeof(rt));
	assert_int_equal(cores_lay_out(cpus, CPU_SETSIZE, nr_cpus), 0);
	rt.options.max_threads = max_threads;
	rt.options.flags = KTRT_UNBOUND;
	rt.plenty = QUEUE_PLENTY;
	rt.leader_fd = -1;
	pthread_mutex_init(&rt.pool_lock, NULL);
	pool_init(&rt.tasks, sizeof(struct ktrt_task));
	assert_int_equal(rt_make_slots(), 0);
}

/* bare_runtime_end - its workers are gone, too */
static inline void bare_runtime_end(void)
{
	park_forget();
	worker_free_all();
	pool_destroy(&rt.tasks);
	pthread_mutex_destroy(&rt.pool_lock);
	free(rt.workers);
	free(rt.loaded);
	cores_free();
	memset(&rt, 0, sizeof(rt));
}

/* Functions that stand for two kinds of tasks; nobody calls them.  The bodies differ, because
 * a linker may merge equal ones. */
static inline int block_early(void *arg)
{
	return 0;
}

static inline int compute_only(void *arg)
{
	return 1;
}

#endif /* RUNTIME_TEST_BARE_RUNTIME_H */
