/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper runs as SCHED_IDLE and nice 19; while its caller has nothing left
 * but to wait for it, it runs at the caller's policy and nice value, also if it
 * turns out to wait more than it computes; and afterwards it is lowered again.
 */
#include "ktest.h"

#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <ktask/ktask.h>

#include "user/pool/user_pool.h"

#define LIMIT_NS 60000000000ull
/* How long a caller waits for a helper, which may find no idle CPU. */
#define HELPER_NS 1000000000ull

struct seen {
	pid_t caller;
	int helper_policy, helper_nice; /* at the beginning of its chunk */
	int lent_policy, lent_nice; /* once it changed */
	int in_chunk; /* the helper has begun */
	int missed; /* the caller went on before that */
	int want_policy, want_nice;
	bool wait_for_loan;
};

static int own_nice(void)
{
	return getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
}

static bool as_wanted(const struct seen *seen)
{
	/* What a real-time thread's nice value is, nobody asks. */
	return sched_getscheduler(0) == seen->want_policy &&
	       (seen->want_policy == SCHED_FIFO ||
		own_nice() == seen->want_nice);
}

/* Two chunks.  The caller's waits until the helper is in the other one, which
 * ends when the helper has been lent what the caller runs at. */
static int await_lending(void *start, void *end, void *arg)
{
	struct seen *seen = arg;
	uint64_t until = ktest_now_ns();

	if (syscall(SYS_gettid) == seen->caller) {
		until += HELPER_NS;
		while (!__atomic_load_n(&seen->in_chunk, __ATOMIC_ACQUIRE) &&
		       ktest_now_ns() < until)
			usleep(100);
		seen->missed =
			!__atomic_load_n(&seen->in_chunk, __ATOMIC_ACQUIRE);
		return 0;
	}
	until += LIMIT_NS;
	seen->helper_policy = sched_getscheduler(0);
	seen->helper_nice = own_nice();
	__atomic_store_n(&seen->in_chunk, 1, __ATOMIC_RELEASE);
	while (seen->wait_for_loan && !as_wanted(seen) &&
	       ktest_now_ns() < until)
		usleep(100);
	seen->lent_policy = sched_getscheduler(0);
	seen->lent_nice = own_nice();
	return 0;
}

/* Return: helpers that the caller's priority was lent; -1: no helper came. */
static int try_two_chunks(struct seen *seen)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, await_lending, seen, 1);

	ktask_ctl_set_max_threads(&ctl, 2);
	ktask_ctl_set_result(&ctl, &result);
	seen->caller = (pid_t)syscall(SYS_gettid);
	seen->in_chunk = 0;
	ktest_check(!ktask_run(NULL, 2, &ctl));
	if (!seen->in_chunk || seen->missed)
		return -1;
	return (int)result.helpers_lent;
}

static int run_two_chunks(struct seen *seen)
{
	int lent = -1;

	for (int i = 0; i < 10 && lent < 0; i++)
		lent = try_two_chunks(seen);
	return lent;
}

static int lend_as(int policy, int nice)
{
	struct seen seen = { .want_policy = policy,
			     .want_nice = nice,
			     .wait_for_loan = true };
	struct seen again = { 0 };

	if (run_two_chunks(&seen) < 0)
		return 77;
	ktest_check(seen.helper_policy == SCHED_IDLE);
	ktest_check(seen.helper_nice == 19);
	ktest_check(seen.lent_policy == policy);
	ktest_check(policy == SCHED_FIFO || seen.lent_nice == nice);
	/* The loan was paid back. */
	if (run_two_chunks(&again) < 0)
		return 77;
	ktest_check(again.helper_policy == SCHED_IDLE);
	ktest_check(again.helper_nice == 19);
	return 0;
}

/* Whatever this test was started with. */
static int lend_at_nice(int nice)
{
	const struct sched_param normal = { .sched_priority = 0 };

	if (sched_setscheduler(0, SCHED_OTHER, &normal) ||
	    setpriority(PRIO_PROCESS, 0, nice))
		return 77;
	return lend_as(SCHED_OTHER, nice);
}

static int lend_normal(void *arg)
{
	return lend_at_nice(0);
}

static int lend_nice(void *arg)
{
	return lend_at_nice(7);
}

static int lend_real_time(void *arg)
{
	struct sched_param param = { .sched_priority = 3 };

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return 77;
	return lend_as(SCHED_FIFO, 0);
}

static void check_child(int (*child)(void *arg))
{
	int status;

	if (geteuid())
		ktest_skip("needs the right to raise priorities");
	status = ktest_in_child_for(child, NULL, 100);
	if (status == 77 << 8)
		ktest_skip("no helper, or no right to the policy");
	assert_int_equal(status, 0);
}

static void the_normal_priority_is_lent(void **state)
{
	check_child(lend_normal);
}

static void a_nice_value_is_lent(void **state)
{
	check_child(lend_nice);
}

static void a_real_time_priority_is_lent(void **state)
{
	check_child(lend_real_time);
}

struct blocking {
	struct pool_item pool_item;
	int policy; /* when it had said that it waits; -1: was never lent */
};

static bool say_that_it_blocks(struct pool_item *pool_item)
{
	struct blocking *blocking = (struct blocking *)pool_item;
	uint64_t until = ktest_now_ns() + LIMIT_NS;

	blocking->policy = -1;
	while (sched_getscheduler(0) != SCHED_OTHER && ktest_now_ns() < until)
		usleep(100);
	if (sched_getscheduler(0) == SCHED_OTHER) {
		pool_item_blocks(pool_item);
		blocking->policy = sched_getscheduler(0);
	}
	return true;
}

/* Return: false if no helper came. */
static bool be_helped(struct blocking *blocking)
{
	uint64_t until = ktest_now_ns() + HELPER_NS;

	if (!pool_submit(&blocking->pool_item, -1))
		return false;
	while (pool_item_state(&blocking->pool_item) == POOL_ITEM_QUEUED &&
	       ktest_now_ns() < until)
		usleep(100);
	if (pool_cancel(&blocking->pool_item, ktest_now_ns()))
		return false;
	pool_wait(&blocking->pool_item);
	return true;
}

static int lend_to_one_that_blocks(void *arg)
{
	struct blocking blocking = { .pool_item.work = say_that_it_blocks };
	struct kt_cpus cpus;
	bool helped = false;

	if (sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }))
		return 77;
	ktest_check(cpus_get_affinity(&cpus));
	blocking.pool_item.cpus = &cpus;
	blocking.pool_item.level = KT_PLACEMENT_ANY;
	pool_enter(1, &cpus);
	for (int i = 0; i < 10 && !helped; i++)
		helped = be_helped(&blocking);
	pool_leave();
	if (!helped || prio_mode() != PRIO_LEND)
		return 77;
	ktest_check(blocking.policy == SCHED_OTHER);
	return 0;
}

static void a_loan_outlives_what_a_helper_says_of_itself(void **state)
{
	check_child(lend_to_one_that_blocks);
}

KTEST_MAIN(KTEST(the_normal_priority_is_lent), KTEST(a_nice_value_is_lent),
	   KTEST(a_real_time_priority_is_lent),
	   KTEST(a_loan_outlives_what_a_helper_says_of_itself))
