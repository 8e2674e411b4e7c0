/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job gets no helper for a core on which a task runs, the caller's apart; an
 * idle or ended runtime leaves all of them.
 */
#include "support/runs.h"

#include <sys/wait.h>

#include <ktask/ktask.h>

static unsigned cpus, may_end;

static unsigned limit_named(const char *name)
{
	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 32);

	for (unsigned i = 0; i < nr && i < 32; i++)
		if (!strcmp(limits[i].name, name))
			return limits[i].threads;
	return 0;
}

struct holders {
	unsigned nr;
	uint64_t cores; /* on which they are */
};

static int hold_a_core(void *arg)
{
	struct holders *held = arg;

	__atomic_fetch_or(&held->cores, 1ull << ktrt_worker() % 64,
			  __ATOMIC_SEQ_CST);
	more(held->nr);
	while (!get(may_end))
		;
	return 0;
}

static int count_units(void *start, void *end, void *arg)
{
	__atomic_fetch_add((size_t *)arg, (size_t)end - (size_t)start,
			   __ATOMIC_SEQ_CST);
	return 0;
}

/* Blocked for a moment, this one may find a holder on its own core. */
static unsigned left_by(const struct holders *held)
{
	uint64_t cores = held->cores | 1ull << ktrt_worker() % 64;
	unsigned busy = (unsigned)__builtin_popcountll(cores);

	return busy < cpus ? cpus - busy + 1 : 1;
}

static int job_in_task(void *arg)
{
	unsigned nr = (unsigned)(uintptr_t)arg;
	struct holders held = { 0 };
	unsigned allowed;
	size_t units = 0;
	DEFINE_KTASK_CTL(ctl, count_units, &units, 1);

	set(may_end, 0);
	for (unsigned i = 1; i < nr; i++)
		if (ktrt_spawn(hold_a_core, &held))
			return 1;
	if (!holds_soon(get(held.nr) == nr - 1))
		return 2;
	allowed = limit_named("others");
	if (ktask_run(NULL, 100000, &ctl) || units != 100000)
		return 3;
	set(may_end, 1);
	/* Fewer, if a worker that found no task is about to sleep. */
	if (nr > 1 && (!allowed || allowed > left_by(&held)))
		return 4;
	return ktrt_wait();
}

static int has_no_others(void *arg)
{
	return limit_named("others") != 0;
}

static void busy_cores_are_left_alone(void **state)
{
	cpus = limit_named("cpus");
	assert_int_equal(limit_named("others"), 0);
	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(ktrt_run(job_in_task, (void *)1), 0);
	assert_int_equal(
		ktrt_run(job_in_task, (void *)(uintptr_t)ktrt_cpus(NULL, 0)),
		0);
	assert_true(holds_soon(limit_named("others") == 0));
	if (!KTEST_TSAN)
		assert_int_equal(ktest_in_child(has_no_others, NULL), 0);
	assert_int_equal(ktrt_stop(), 0);
	assert_int_equal(limit_named("others"), 0);
}

static int spend_time(void *start, void *end, void *arg)
{
	uint64_t until = ktest_now_ns() + 200000;

	while (ktest_now_ns() < until)
		;
	return 0;
}

/* Who is told to work is the caller, as a rule: no helper fewer for one. */
static void one_that_works_leaves_all_cpus(void **state)
{
	ktask_others_work(1);
	assert_int_equal(limit_named("others"), cpus);
	ktask_others_work(-1);
	assert_int_equal(limit_named("others"), 0);
}

/* As if all CPUs were busy; there would be capacity for helpers. */
static void jobs_heed_what_they_are_told(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, spend_time, NULL, 1);

	ktask_ctl_set_result(&ctl, &result);
	ktask_others_work((int)cpus);
	assert_int_equal(ktask_run(NULL, 200, &ctl), 0);
	ktask_others_work(-(int)cpus);
	assert_int_equal(result.threads, 1);
}

KTEST_MAIN(KTEST(busy_cores_are_left_alone),
	   KTEST(one_that_works_leaves_all_cpus),
	   KTEST(jobs_heed_what_they_are_told))
