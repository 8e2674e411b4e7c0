/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper that falls asleep in the very moment of an item takes it.
 *
 * Works by standing before two functions of the C library.  The helper asks
 * for the time while it looks for an item: the caller is let go then, and the
 * time is said to be up.  The caller asks who it is twice before it submits: at
 * one of them it waits for the helper, so that both change its word at once.
 */
#include "support/work.h"

#include <sched.h>
#include <sys/syscall.h>

#define NR_ROUNDS (KTEST_TSAN ? 300 : 2000)
#define UP_NS 1000000000l
/* From the rendezvous to the item, and to sleep. */
#define DELAY_MAX 600
#define RENDEZVOUS_LOOPS 200000

static uint32_t armed, helper_is_here, caller_is_here;
static unsigned delay;
static unsigned nr_met, calls_left; /* until getpid() waits for the helper */
static __thread bool is_caller;

static void wait_loops(const uint32_t *flag)
{
	for (int i = 0; i < RENDEZVOUS_LOOPS; i++)
		if (__atomic_load_n(flag, __ATOMIC_ACQUIRE))
			return;
}

static bool disarm(void)
{
	return __atomic_exchange_n(&armed, 0, __ATOMIC_ACQ_REL);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static __thread long late_s;
	int error = (int)syscall(SYS_clock_gettime, clock, ts);

	if (is_caller || clock != CLOCK_MONOTONIC)
		return error;
	if (disarm()) {
		late_s += UP_NS / 1000000000l;
		set_flag(&helper_is_here);
		wait_loops(&caller_is_here);
		for (volatile unsigned i = 0; i < delay; i++)
			;
	}
	ts->tv_sec += late_s;
	return error;
}

pid_t getpid(void)
{
	if (is_caller && calls_left && !--calls_left) {
		set_flag(&armed);
		wait_loops(&helper_is_here);
		nr_met += __atomic_load_n(&helper_is_here, __ATOMIC_RELAXED);
		set_flag(&caller_is_here);
	}
	return (pid_t)syscall(SYS_getpid);
}

/* As work.meet, but nobody sleeps: both leave within a moment. */
static int meet(struct work *work, size_t from, size_t to)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;
	bool helper = work_is_helper(work);

	set_flag(&work->here[helper]);
	while (!__atomic_load_n(&work->here[!helper], __ATOMIC_ACQUIRE)) {
		if (ktest_now_ns() > end_ns)
			return -ETIME;
		sched_yield();
	}
	return 0;
}

static void job_that_needs_a_helper(void)
{
	struct work work = { .also = meet };

	work_begin(&work, 4);
	assert_int_equal(work_run(&work), 0);
	assert_true(work_done_once(&work));
	work_end(&work);
}

static void both_change_its_word_at_once(void **state)
{
	uint64_t random = ktest_seed();

	need_sure_helper();
	is_caller = true;
	for (int i = 0; i < NR_ROUNDS; i++) {
		/* At once after another, so that the helper looks for long. */
		job_that_needs_a_helper();
		job_that_needs_a_helper();
		delay = (unsigned)ktest_random_below(&random, DELAY_MAX);
		__atomic_store_n(&helper_is_here, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&caller_is_here, 0, __ATOMIC_RELAXED);
		calls_left = 1 + (unsigned)ktest_random_below(&random, 2);
		job_that_needs_a_helper();
		disarm();
	}
	printf("# met %u times\n", nr_met);
}

KTEST_MAIN(KTEST(both_change_its_word_at_once))
