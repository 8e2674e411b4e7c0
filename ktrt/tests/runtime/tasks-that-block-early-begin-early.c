/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * After tasks that blocked as soon as they had begun, others of the same function may begin
 * while workers of the core are ready: some for each, and no more than a bound.
 */
#include "support/runs.h"

#include <pthread.h>

#include "support/bare_runtime.h"

#define SOON_NS 50000
#define LATE_NS 150000

/* A runtime without threads. */
static struct worker *worker;
static struct core *core;
static struct ktrt_task tasks[4];

static void lay_out(void)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	bare_runtime_begin(&cpus, 1, 4);
	worker = worker_new(0);
	assert_non_null(worker);
	core = worker->core = &rt.cores[0];
	/* Another one is ready as well. */
	core->active = 2;
	core->began = core->early_func = block_early;
#ifdef RANK_ASSERTS
	leads_now = true;
#endif
}

static void give_task(struct ktrt_task *task, ktrt_func func)
{
	memset(task, 0, sizeof(*task));
	task->func = func;
	assert_true(deque_push(&worker->deque, task));
}

static uint32_t serve_often(unsigned nr, uint64_t between_ns)
{
	uint64_t now = 1000000000;

	core->early = 0;
	core->served_ns = 0;
	for (unsigned i = 0; i <= nr; i++)
		early_note_served(core, now + i * between_ns);
	return core->early;
}

static void early_ones_are_counted(void **state)
{
	lay_out();
	assert_int_equal(serve_often(0, SOON_NS), 0);
	assert_int_equal(serve_often(100, LATE_NS), 0);
	assert_int_equal(serve_often(1, SOON_NS), 4);
	assert_int_equal(serve_often(3, SOON_NS), 12);
	assert_int_equal(serve_often(1000, SOON_NS), 64);
	assert_ptr_equal(core->early_func, block_early);
	/* Those of another function are counted anew. */
	core->began = compute_only;
	early_note_served(core, core->served_ns + SOON_NS);
	assert_int_equal(core->early, 4);
	assert_ptr_equal(core->early_func, compute_only);
	core->active = 0;
	bare_runtime_end();
}

static void as_many_begin(void **state)
{
	lay_out();
	for (int i = 0; i < 4; i++)
		give_task(&tasks[i], block_early);
	assert_null(early_take(worker, block_early));
	core->early = 2;
	assert_ptr_equal(early_take(worker, block_early), &tasks[3]);
	assert_ptr_equal(early_take(worker, block_early), &tasks[2]);
	assert_null(early_take(worker, block_early));
	assert_int_equal(deque_size(&worker->deque), 2);
	core->active = 0;
	bare_runtime_end();
}

static void others_wait_as_ever(void **state)
{
	lay_out();
	give_task(&tasks[0], compute_only);
	core->early = 10;
	assert_null(early_take(worker, block_early));
	assert_null(early_take(worker, compute_only));
	assert_int_equal(deque_size(&worker->deque), 1);
	core->early_func = compute_only;
	/* Nobody else is ready; a task in the middle waits for the core. */
	core->active = 1;
	assert_null(early_take(worker, compute_only));
	core->active = 2;
	core->nr_suspended = 1;
	assert_null(early_take(worker, compute_only));
	core->nr_suspended = 0;
	assert_ptr_equal(early_take(worker, compute_only), &tasks[0]);
	core->active = 0;
	bare_runtime_end();
}

KTEST_MAIN(KTEST(early_ones_are_counted), KTEST(as_many_begin),
	   KTEST(others_wait_as_ever))
