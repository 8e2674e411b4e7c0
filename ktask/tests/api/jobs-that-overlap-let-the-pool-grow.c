/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The first job of a process makes some helpers.  A later job that may have more gets more,
 * also if it always overlaps another one: on a machine of many CPUs the pool would keep the
 * size that was enough for a small job.  Threads are made one by one, also by callers whose
 * clocks were read in another order than they come to that.
 */
#include "support/work.h"

#define MANY_CPUS 64
#include "support/many_cpus.h"

#include "user/pool/user_pool.h"

/* Of the first job; the others are made one by one. */
#define FIRST_HELPERS 16
#define WANTED (FIRST_HELPERS + 8)
/* The second job ends as soon as it has seen enough. */
#define NR_UNITS 1000000
#define NR_THREADS 40

/* More than there may be threads. */
#define NR_HELD 100
#define MS_NS 1000000ull

static uint32_t is_over, has_begun, is_released;
static __thread uint64_t
	stopped_ns; /* what the thread's clock shows; 0: it runs */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_MONOTONIC || !stopped_ns)
		return (int)syscall(SYS_clock_gettime, clock, ts);
	ts->tv_sec = (time_t)(stopped_ns / 1000000000);
	ts->tv_nsec = (long)(stopped_ns % 1000000000);
	return 0;
}

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

/* Helpers keep their units until the caller has submitted all. */
static int hold_until_caller(struct work *work, size_t from, size_t to)
{
	if (!work_is_helper(work))
		set_flag(&is_released);
	return wait_for_flag(&is_released) ? 0 : -ETIME;
}

/* Return: helpers after a job whose caller reads @now_ns. */
static unsigned helpers_after_job(uint64_t now_ns)
{
	struct work work = { .also = hold_until_caller };
	struct ktask_ctl ctl;

	is_released = 0;
	work_begin(&work, NR_HELD);
	ctl = work_ctl(&work, 1);
	ktask_ctl_set_fixed_threads(&ctl, NR_THREADS);
	stopped_ns = now_ns;
	ktest_check(!ktask_run(WORK_BASE, NR_HELD, &ctl));
	stopped_ns = 0;
	work_end(&work);
	return pool_helpers();
}

/* A helper that is just between two items takes none, and no other is made then. */
static unsigned grow_with_job(uint64_t now_ns)
{
	unsigned before = pool_helpers(), nr;

	do
		nr = helpers_after_job(now_ns);
	while (nr == before);
	return nr;
}

static int run_with_old_times(void *arg)
{
	uint64_t later_ns = ktest_now_ns() + 1000 * MS_NS;
	pthread_t first;
	unsigned nr;

	ktest_check(!pthread_create(&first, NULL, run_first, NULL));
	ktest_check(wait_for_flag(&has_begun));
	nr = grow_with_job(later_ns);
	ktest_check(nr == FIRST_HELPERS + 1);
	ktest_check(helpers_after_job(later_ns - MS_NS) == nr);
	ktest_check(helpers_after_job(later_ns + 4 * MS_NS) == nr);
	ktest_check(grow_with_job(later_ns + 5 * MS_NS) == nr + 1);
	set_flag(&is_over);
	pthread_join(first, NULL);
	return 0;
}

static void the_second_job_makes_what_it_lacks(void **state)
{
	need_sure_helper();
	assert_int_equal(ktest_in_child_for(run_both, NULL, HANG_SECONDS), 0);
}

static void a_job_that_came_late_makes_none_at_once(void **state)
{
	need_sure_helper();
	assert_int_equal(
		ktest_in_child_for(run_with_old_times, NULL, HANG_SECONDS), 0);
}

KTEST_MAIN(KTEST(the_second_job_makes_what_it_lacks),
	   KTEST(a_job_that_came_late_makes_none_at_once))
