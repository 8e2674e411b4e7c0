/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What ktrt_spawn_begin() began need never end, as where its argument cannot be made.
 * If that would have been done at once, a later task is queued all the same.
 */
#include "support/runs.h"

#include "support/bare_runtime.h"

static unsigned ran;

static int count_run(void *arg)
{
	ran++;
	return 0;
}

static void later_ones_are_queued(void **state)
{
	static struct ktrt_task outer;
	struct worker *worker;
	cpu_set_t cpus;
	void *buffer;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	bare_runtime_begin(&cpus, 1, 4);
	rt.runs = 1;
	worker = self_worker = worker_new(0);
	assert_non_null(worker);
	worker->core = &rt.cores[0];
	outer.live = LIVE_BODY;
	worker->current = &outer;
	worker_read_stack(worker);
	/* As if it had plenty of brief ones. */
	worker->deque.plenty = 1;
	worker->at_once = count_run;
	assert_non_null(ktrt_spawn_begin(count_run, 8, 0));
	assert_true(worker->begun_now);
	worker->deque.plenty = 0;
	buffer = ktrt_spawn_begin(count_run, 8, 0);
	assert_non_null(buffer);
	ktrt_spawn_end(count_run, buffer);
	assert_int_equal(ran, 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran, 1);
	worker_retire(worker);
	self_worker = NULL;
	bare_runtime_end();
}

KTEST_MAIN(KTEST(later_ones_are_queued))
