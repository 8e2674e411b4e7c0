/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A worker that took several trifles of an attached thread leaves the next to that thread,
 * if the thread did tasks itself when it last could; otherwise it goes on.
 */
#include "support/runs.h"

#include <pthread.h>

#include "support/bare_runtime.h"

/* A worker looks whether to rest after so many, and then rests longer than before. */
#define ROW 16
#define RESTED_NS 32000
#define ROUNDS 1000

/* A runtime without threads. */
static struct worker *thief, *maker;
static struct ktrt_task outer;

static int do_nothing(void *arg)
{
	return 0;
}

static void lay_out(void)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	bare_runtime_begin(&cpus, 1, 4);
	thief = worker_new(0);
	maker = worker_new(0);
	assert_true(thief && maker);
	thief->core = &rt.cores[0];
	maker->outer = &outer;
	task_renew(&outer, NULL, NULL, NULL);
}

static void do_row(void)
{
	for (int i = 0; i < ROW; i++) {
		struct ktrt_task *task = pool_get(&rt.tasks, &thief->tasks);

		assert_non_null(task);
		task_renew(task, &outer, do_nothing, NULL);
		task->maker = (uint16_t)(maker->slot + 1);
		at_add(&outer.live, 1);
		assert_null(short_tasks_run(thief, task));
	}
}

/*
 * Did the worker go on once although it would rest longer from now on?  The maker stands
 * still, so that a rest ends early and the next would be a short one again.  A row that
 * was interrupted was not of trifles, and says nothing.
 */
static bool went_on(bool helps)
{
	at_poke(&maker->helps, helps);
	for (int i = 0; i < ROUNDS; i++) {
		thief->rest_ns = RESTED_NS;
		do_row();
		if (thief->rest_ns > RESTED_NS)
			return true;
	}
	return false;
}

static void makers_that_help_are_left_alone(void **state)
{
	bool without, with;

	lay_out();
	without = went_on(false);
	with = went_on(true);
	bare_runtime_end();
	if (!without)
		ktest_skip("no task is a trifle here");
	assert_false(with);
}

KTEST_MAIN(KTEST(makers_that_help_are_left_alone))
