/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job gets no helper for a core on which a task runs, the caller's apart; an
 * idle or ended runtime leaves all of them.
 */
#include "support/runs.h"

#include <sys/wait.h>

#include <ktask/ktask.h>

static unsigned cpus, go;

static unsigned limit_named(const char *name)
{
	struct ktask_limit limits[32];
	unsigned nr = ktask_limits(limits, 32);

	for (unsigned i = 0; i < nr && i < 32; i++)
		if (!strcmp(limits[i].name, name))
			return limits[i].threads;
	return 0;
}

static int hold_a_core(void *arg)
{
	more(*(unsigned *)arg);
	while (!get(go))
		;
	return 0;
}

static int count_units(void *start, void *end, void *arg)
{
	__atomic_fetch_add((size_t *)arg, (size_t)end - (size_t)start,
			   __ATOMIC_SEQ_CST);
	return 0;
}

static int job_in_task(void *arg)
{
	unsigned held = 0, nr = (unsigned)(uintptr_t)arg, allowed;
	size_t units = 0;
	DEFINE_KTASK_CTL(ctl, count_units, &units, 1);

	set(go, 0);
	for (unsigned i = 1; i < nr; i++)
		if (ktrt_spawn(hold_a_core, &held))
			return 1;
	if (!holds_soon(get(held) == nr - 1))
		return 2;
	allowed = limit_named("others");
	if (ktask_run(NULL, 100000, &ctl) || units != 100000)
		return 3;
	set(go, 1);
	if (nr > 1 && allowed != (nr < cpus ? cpus - nr + 1 : 1))
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

/* As if all CPUs were busy; there would be room for helpers. */
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
	   KTEST(jobs_heed_what_they_are_told))
