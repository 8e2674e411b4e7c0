/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The wall clock is never asked, so setting it changes nothing; a monotonic
 * clock that jumps ahead (a machine that stood still) or that is a little
 * behind on the helper's CPU does no harm to jobs.
 */
#include "support/work.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define UNITS 4000
#define HOUR_NS 3600000000000ll

static uint32_t nr_wall; /* times that a wall clock was asked */
static int64_t ahead_ns; /* of every thread */
static int64_t helper_ahead_ns; /* of threads other than the first */

/* What the library calls; the test itself asks the kernel. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t shift = __atomic_load_n(&ahead_ns, __ATOMIC_RELAXED);
	int64_t now;

	if (syscall(SYS_clock_gettime, id, ts))
		return -1;
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE ||
	    id == CLOCK_TAI) {
		__atomic_add_fetch(&nr_wall, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if (id != CLOCK_MONOTONIC)
		return 0;
	if (gettid() != getpid())
		shift += __atomic_load_n(&helper_ahead_ns, __ATOMIC_RELAXED);
	now = ts->tv_sec * 1000000000ll + ts->tv_nsec + shift;
	ts->tv_sec = now / 1000000000;
	ts->tv_nsec = now % 1000000000;
	return 0;
}

static int count_wall(void)
{
	__atomic_add_fetch(&nr_wall, 1, __ATOMIC_RELAXED);
	return 0;
}

time_t time(time_t *at)
{
	time_t now = (time_t)syscall(SYS_time, NULL);

	count_wall();
	if (at)
		*at = now;
	return now;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	count_wall();
	return (int)syscall(SYS_gettimeofday, tv, zone);
}

static int64_t jump_ns;

static int64_t jump_left(void)
{
	return __atomic_load_n(&jump_ns, __ATOMIC_RELAXED);
}

static int jump_in_chunk(struct work *work, size_t from, size_t to)
{
	uint64_t naps = HANG_NS / 50000;

	nap_us(50);
	/* Helpers leave the second half until the caller was there. */
	while (work_is_helper(work) && to > UNITS / 2 && jump_left() && naps--)
		nap_us(50);
	if (!work_is_helper(work) && from >= UNITS / 4 && jump_left()) {
		__atomic_add_fetch(&ahead_ns, jump_left(), __ATOMIC_RELAXED);
		__atomic_store_n(&jump_ns, 0, __ATOMIC_RELAXED);
	}
	return 0;
}

static int on_progress(const struct ktask_progress *progress, void *arg)
{
	assert_true(progress->units_done <= progress->units_total);
	return 0;
}

static void run_job(uint64_t deadline_ns, int expected)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = jump_in_chunk };
	struct ktask_ctl ctl = work_ctl(&work, 1);

	work_begin(&work, UNITS);
	ktask_ctl_set_result(&ctl, &result);
	ktask_ctl_set_progress(&ctl, on_progress, NULL, 1);
	ktask_ctl_set_deadline(&ctl, deadline_ns);
	assert_int_equal(ktask_run(WORK_BASE, UNITS, &ctl), expected);
	if (expected)
		assert_true(work_undone_exactly(&work, NULL));
	else
		assert_true(work_done_once(&work));
	/* Nothing counted from below zero. */
	assert_true(result.wall_ns < 100 * HOUR_NS);
	assert_true(result.tail_ns < 100 * HOUR_NS);
	work_end(&work);
}

static int reset_clocks(void **state)
{
	jump_ns = 0;
	__atomic_store_n(&helper_ahead_ns, 0, __ATOMIC_RELAXED);
	return 0;
}

static void nobody_asks_the_wall_clock(void **state)
{
	uint32_t before = nr_wall;
	struct ktask_limit limits[16] = { KTASK_LIMIT_INIT };
	struct timespec ts;

	run_job(0, 0);
	ktask_limits(limits, 16);
	ktask_jobs(NULL, 0, NULL);
	ktask_trim();
	assert_int_equal(nr_wall, before);
	/* It would have been seen. */
	clock_gettime(CLOCK_REALTIME, &ts);
	time(NULL);
	assert_int_equal(nr_wall, before + 2);
}

static void hours_pass_in_the_middle_of_a_job(void **state)
{
	jump_ns = 10 * HOUR_NS;
	run_job(0, 0);
	run_job(0, 0);
}

/* Time in which the machine stood still counts for a deadline, as it does for
 * whoever waits. */
static void a_deadline_passes_meanwhile(void **state)
{
	run_job(HOUR_NS, 0);
	jump_ns = 2 * HOUR_NS;
	run_job(HOUR_NS, -ETIMEDOUT);
}

static void helpers_are_a_little_behind_or_ahead(void **state)
{
	__atomic_store_n(&helper_ahead_ns, -100000, __ATOMIC_RELAXED);
	run_job(0, 0);
	__atomic_store_n(&helper_ahead_ns, 100000, __ATOMIC_RELAXED);
	run_job(0, 0);
}

static void the_clock_goes_back_a_little_for_all(void **state)
{
	for (int i = 0; i < 5; i++) {
		jump_ns = -1000000;
		run_job(0, 0);
	}
}

#define T(name) cmocka_unit_test_setup(name, reset_clocks)

KTEST_MAIN(T(nobody_asks_the_wall_clock), T(hours_pass_in_the_middle_of_a_job),
	   T(a_deadline_passes_meanwhile),
	   T(helpers_are_a_little_behind_or_ahead),
	   T(the_clock_goes_back_a_little_for_all))
