/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Without UMT a worker that was blocked in a stall does not count as ready until its
 * task ends, also if it did that task inside a wait, or waits.  Of a worker that does not
 * work on the core nothing is counted.
 */
#include "support/runs.h"

#include <pthread.h>

#include "support/bare_runtime.h"

static struct worker *worker;
static struct core *core;
static struct ktrt_task outer;
static unsigned ran;

/* This thread is the worker. */
static void lay_out(void)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	bare_runtime_begin(&cpus, 1, 4);
	rt.runs = 1;
	worker = self_worker = worker_new(0);
	assert_non_null(worker);
	core = worker->core = &rt.cores[0];
	park_arrive(core);
	memset(&outer, 0, sizeof(outer));
	outer.live = LIVE_BODY;
	worker->current = &outer;
}

static void take_down(void)
{
	worker_retire(worker);
	self_worker = NULL;
	bare_runtime_end();
}

static void set_leading(bool leads)
{
#ifdef RANK_ASSERTS
	leads_now = leads;
#else
	(void)leads;
#endif
}

static void mark_stuck(void)
{
	set_leading(true);
	park_stuck(core);
	set_leading(false);
}

static void count_is(int nr_stuck)
{
	assert_int_equal(core->nr_stuck, nr_stuck);
	assert_int_equal(worker->stuck, nr_stuck);
	assert_int_equal(core->active, 1);
	assert_int_equal(core_ready(core), 1 - nr_stuck);
}

static int block_in_it(void *arg)
{
	mark_stuck();
	count_is(1);
	mark_stuck();
	count_is(1);
	ran++;
	return 0;
}

static void those_in_waits(void **state)
{
	lay_out();
	ran = 0;
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(ktrt_spawn(block_in_it, NULL), 0);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(ran, i);
		count_is(0);
	}
	take_down();
}

static void who_is_not_here(void **state)
{
	static uint32_t signal;
	struct worker *others[2];

	lay_out();
	for (int i = 0; i < 2; i++) {
		others[i] = worker_new(0);
		assert_non_null(others[i]);
		others[i]->core = core;
	}
	others[0]->wake = SIGNAL_NONE;
	others[1]->awaited = &signal;
	mark_stuck();
	count_is(1);
	assert_int_equal(others[0]->stuck | others[1]->stuck, 0);
	others[1]->awaited = NULL;
	park_goes_on(worker);
	count_is(0);
	take_down();
}

/* Its mark came before what it waits for was seen, and it had left the core. */
static void *mark_late(void *arg)
{
	bool waits = holds_soon(at_load(&worker->awaited));

	core_lock(core);
	at_poke(&worker->stuck, 1);
	at_poke(&core->nr_stuck, core->nr_stuck + 1);
	core_unlock(core);
	signal_give(arg);
	return waits ? arg : NULL;
}

static void marked_as_they_leave(void **state)
{
	static uint32_t signal;
	pthread_t thread;
	void *waited;

	lay_out();
	mark_stuck();
	signal = SIGNAL_NONE;
	assert_int_equal(pthread_create(&thread, NULL, mark_late, &signal), 0);
	park_until(worker, &signal, 0);
	assert_int_equal(pthread_join(thread, &waited), 0);
	assert_non_null(waited);
	count_is(0);
	take_down();
}

KTEST_MAIN(KTEST(those_in_waits), KTEST(who_is_not_here),
	   KTEST(marked_as_they_leave))
