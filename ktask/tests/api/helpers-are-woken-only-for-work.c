/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A caller that wakes many helpers stops when nothing is left to claim: a job of
 * a tenth of a millisecond is over before a hundred helpers are awake.
 */
#define MANY_CPUS 24
#include "support/many_cpus.h"

#include "support/work.h"

#include "user/user_job.h"

#define NR_UNITS 1000

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

/* Return: helpers that a job was given of which others claimed @claimed. */
static unsigned helpers_of_job(uint64_t claimed)
{
	const struct ktask_node all = { .start = NULL,
					.task_size = NR_UNITS,
					.nid = NUMA_NO_NODE };
	DEFINE_KTASK_CTL(ctl, do_nothing, NULL, 1);
	static struct user_job job;
	unsigned helpers;

	assert_int_equal(job_init(&job, &all, 1, &ctl), 0);
	job.ctx.job.ranges[0].next = claimed;
	job_begin(&job, false);
	helpers = job.ctx.helpers.nr_used;
	job_work(&job);
	assert_int_equal(job_end(&job), 0);
	job_release(&job);
	return helpers;
}

static void nobody_is_woken_for_nothing(void **state)
{
	need_helper();
	assert_int_equal(helpers_of_job(NR_UNITS), 0);
}

static void a_job_with_work_has_helpers(void **state)
{
	need_helper();
	assert_in_range(helpers_of_job(0), 1, MANY_CPUS);
}

KTEST_MAIN(KTEST(nobody_is_woken_for_nothing),
	   KTEST(a_job_with_work_has_helpers))
