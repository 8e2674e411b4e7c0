/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A pool of one helper whose clock stands still until the test says that the helper is
 * late.  Until then the helper spins, however long the test takes, so no test of it
 * depends on who gets a CPU in time.  Include in one file of a program.
 *
 * Owns standing before the C library's clock_gettime() and, by syscalls.h, syscall().
 */
#ifndef TESTS_API_SUPPORT_ONE_HELPER_H
#define TESTS_API_SUPPORT_ONE_HELPER_H

#include "syscalls.h"
#include "work.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "user/pool/user_pool.h"

static _Atomic pid_t pool_caller; /* 0 before enter_pool() */
static struct kt_cpus pool_cpus; /* of the process */
static _Atomic uint64_t helper_clock_ns;
static _Atomic bool
	helper_is_late; /* each reading of its clock adds a second */
static _Atomic unsigned nr_taken; /* items */
/* Called by the helper before it reads its clock, or NULL.  Set before enter_pool(). */
static void (*before_clock_read)(void);

static inline bool is_helper(void)
{
	return pool_caller && gettid() != pool_caller;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t now_ns;

	if (clock != CLOCK_MONOTONIC || !is_helper())
		return (int)syscalls_pass(SYS_clock_gettime,
					  (long[6]){ clock, (long)ts });
	if (before_clock_read)
		before_clock_read();
	if (helper_is_late)
		helper_clock_ns += 1000000000;
	now_ns = helper_clock_ns;
	ts->tv_sec = (time_t)(now_ns / 1000000000);
	ts->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

/* enter_pool - start the pool of one helper; skip the test where it may get none */
static inline void enter_pool(void)
{
	need_sure_helper();
	setenv("KTASK_CAP_PERCENT", "1", 1);
	assert_true(cpus_get_affinity(&pool_cpus));
	helper_clock_ns = ktest_now_ns();
	pool_caller = gettid();
	pool_enter(1, &pool_cpus);
}

static inline bool take_item(struct pool_item *item)
{
	nr_taken++;
	return true;
}

static inline struct pool_item new_item(void)
{
	return (struct pool_item){ .work = take_item,
				   .cpus = &pool_cpus,
				   .level = KT_PLACEMENT_ANY,
				   .now_ns = kt_now_ns() };
}

/* nap_or_fail - sleep a little; fail the test if it has waited for HANG_NS */
static inline void nap_or_fail(uint64_t since_ns)
{
	nap_us(100);
	assert_true(ktest_now_ns() - since_ns < HANG_NS);
}

/* submit_item - try again where the helper is between two phases: it takes none then */
static inline void submit_item(struct pool_item *item)
{
	uint64_t since_ns = ktest_now_ns();

	while (!pool_submit(item, -1))
		nap_or_fail(since_ns);
}

static inline void await_done(const struct pool_item *item)
{
	uint64_t since_ns = ktest_now_ns();

	while (pool_item_state(item) != POOL_ITEM_DONE)
		nap_or_fail(since_ns);
}

#endif /* TESTS_API_SUPPORT_ONE_HELPER_H */
