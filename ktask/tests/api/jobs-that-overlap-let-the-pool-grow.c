/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The first job of a process makes some helpers.  A later job that may have more gets more,
 * also if it always overlaps another one: on a machine of many CPUs the pool would keep the
 * size that was enough for a small job.
 */
#include "support/work.h"

#define MANY_CPUS 64
#include "support/many_cpus.h"

/* Of the first job; the others are made one by one. */
#define FIRST_HELPERS 16
#define WANTED (FIRST_HELPERS + 8)
/* The second job ends as soon as it has seen enough. */
#define NR_UNITS 1000000
#define NR_THREADS 40

static uint32_t is_over, has_begun;

static int hold_until_over(struct work *work, size_t from, size_t to)
{
	set_flag(&has_begun);
	return wait_for_flag(&is_over) ? 0 : -ETIME;
}

/* A small job that lasts as long as the second one. */
static void *run_first(void *arg)
{
	struct work work = { .also = hold_until_over };
	struct ktask_ctl ctl;

	work_begin(&work, 2);
	ctl = work_ctl(&work, 1);
	ktask_ctl_set_fixed_threads(&ctl, 2);
	ktest_check(!ktask_run(WORK_BASE, 2, &ctl));
	work_end(&work);
	return NULL;
}

static int nap_until_grown(struct work *work, size_t from, size_t to)
{
	nap_us(500);
	return helpers_now(NULL, 0) >= WANTED ? -ECANCELED : 0;
}

static int run_both(void *arg)
{
	struct work work = { .also = nap_until_grown };
	struct ktask_ctl ctl;
	pthread_t first;

	ktest_check(!pthread_create(&first, NULL, run_first, NULL));
	ktest_check(wait_for_flag(&has_begun));
	work_begin(&work, NR_UNITS);
	ctl = work_ctl(&work, 1);
	/* Fixed: no thread is made in place of those that nap. */
	ktask_ctl_set_fixed_threads(&ctl, NR_THREADS);
	ktask_ctl_set_deadline(&ctl, 30000000000u);
	ktest_check(ktask_run(WORK_BASE, NR_UNITS, &ctl) == -ECANCELED);
	set_flag(&is_over);
	pthread_join(first, NULL);
	work_end(&work);
	return 0;
}

static void the_second_job_makes_what_it_lacks(void **state)
{
	need_sure_helper();
	assert_int_equal(ktest_in_child_for(run_both, NULL, HANG_SECONDS), 0);
}

KTEST_MAIN(KTEST(the_second_job_makes_what_it_lacks))
