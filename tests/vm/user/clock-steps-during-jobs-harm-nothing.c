/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The wall clock is set years forward and back, again and again, while jobs
 * run, some of them with a deadline: each unit is done once, no deadline
 * passes early, none late.
 */
#include "sys.h"

#include <pthread.h>
#include <time.h>

#include <ktask/ktask.h>

#define UNITS 2000
#define JOBS 8
#define YEAR 31536000

static uint8_t done[UNITS];
static uint32_t end_steps, nr_steps;

static int count_chunk(void *start, void *end, void *arg)
{
	for (size_t i = (size_t)start; i < (size_t)end; i++)
		__atomic_add_fetch(&done[i], 1, __ATOMIC_RELAXED);
	usleep(100);
	return 0;
}

static void *step_clock(void *arg)
{
	struct timespec now;

	while (!__atomic_load_n(&end_steps, __ATOMIC_RELAXED)) {
		clock_gettime(CLOCK_REALTIME, &now);
		now.tv_sec += nr_steps % 2 ? -3 * YEAR : 3 * YEAR;
		if (clock_settime(CLOCK_REALTIME, &now))
			break;
		nr_steps++;
		usleep(1500);
	}
	return NULL;
}

static int run_job(uint64_t deadline_ns)
{
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 1);

	memset(done, 0, sizeof(done));
	ktask_ctl_set_chunk_us(&ctl, 1);
	if (deadline_ns)
		ktask_ctl_set_deadline(&ctl, deadline_ns);
	return ktask_run(NULL, UNITS, &ctl);
}

static bool all_done_once(void)
{
	for (size_t i = 0; i < UNITS; i++)
		if (done[i] != 1)
			return false;
	return true;
}

static void steps_of_years(void **state)
{
	uint64_t start_ns;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, step_clock, NULL), 0);
	for (int i = 0; i < JOBS; i++) {
		assert_int_equal(run_job(i % 2 ? 0 : 600000000000), 0);
		assert_true(all_done_once());
	}
	start_ns = ktest_now_ns();
	assert_int_equal(run_job(20000000), -ETIMEDOUT);
	/* Not years; a guest may stand still for a while. */
	assert_in_range(ktest_now_ns() - start_ns, 20000000, 100000000000);
	__atomic_store_n(&end_steps, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	if (nr_steps < 2)
		ktest_skip("the clock cannot be set");
}

KTEST_MAIN(KTEST(steps_of_years))
