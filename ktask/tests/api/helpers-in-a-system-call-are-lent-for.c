/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper of the lowest priority in a system call that holds a lock is lent the priority
 * of whoever is about to wait for the lock, and gives it back behind the call, or behind the
 * next one if it was lent something too late.  What it is given for an exec or the end of the process
 * it keeps.  Nobody else is touched.
 */
#include "support/work.h"

#include <stdlib.h>

#include "ops/lent_threads.h"
#include "user/job_waits.h"

static struct lent_threads inside;
static uint32_t has_entered, is_lent;
static int policy_inside, policy_behind, policy_of_other;

static void *call_at_lowest(void *arg)
{
	int index;

	prio_lower();
	index = lent_threads_enter(&inside);
	set_flag(&has_entered);
	wait_for_flag(&is_lent);
	policy_inside = sched_getscheduler(0);
	lent_threads_leave(&inside, index);
	policy_behind = sched_getscheduler(0);
	return NULL;
}

/* Has left before anybody lends. */
static void *leave_at_once(void *arg)
{
	prio_lower();
	lent_threads_leave(&inside, lent_threads_enter(&inside));
	wait_for_flag(&is_lent);
	policy_of_other = sched_getscheduler(0);
	return NULL;
}

/* The mode is known from the first helper on. */
static int lend_to_both(void *arg)
{
	pthread_t helper, other;

	ktest_check(!work_met());
	ktest_check(prio_mode() == PRIO_LEND);
	ktest_check(!pthread_create(&other, NULL, leave_at_once, NULL));
	ktest_check(!pthread_create(&helper, NULL, call_at_lowest, NULL));
	ktest_check(wait_for_flag(&has_entered));
	while (inside.nr > 1)
		nap_us(100);
	lent_threads_lend(&inside);
	set_flag(&is_lent);
	pthread_join(helper, NULL);
	pthread_join(other, NULL);
	ktest_check(policy_inside == SCHED_OTHER);
	ktest_check(policy_behind == SCHED_IDLE);
	ktest_check(policy_of_other == SCHED_IDLE);
	ktest_check(!inside.nr);
	return 0;
}

static void who_is_inside_is_raised(void **state)
{
	need_lent_helper();
	assert_int_equal(ktest_in_child_for(lend_to_both, NULL, HANG_SECONDS),
			 0);
}

static uint32_t helper_is_done;

/* A loan that comes when it has left. */
static int leave_before_loan(struct work *work, size_t from, size_t to)
{
	const struct prio own = { .policy = SCHED_OTHER };
	bool is_helper = work_is_helper(work);

	if (is_helper)
		ktest_check(prio_lend(gettid(), &own));
	lent_threads_leave(&inside, lent_threads_enter(&inside));
	if (!is_helper)
		return wait_for_flag(&helper_is_done) ? 0 : -ETIME;
	policy_behind = sched_getscheduler(0);
	set_flag(&helper_is_done);
	return 0;
}

static void run_with_loan(void)
{
	struct work work = { .also = leave_before_loan, .meet = true };

	ktest_check(!work_met());
	ktest_check(prio_mode() == PRIO_LEND);
	/* A helper may have starved before the two met. */
	forget_overload();
	work_begin(&work, 2);
	ktest_check(!work_run(&work));
	work_end(&work);
	ktest_check(sched_getscheduler(0) == SCHED_OTHER);
}

static int run_with_late_loan(void *arg)
{
	run_with_loan();
	ktest_check(policy_behind == SCHED_IDLE);
	return 0;
}

/* As the shim raises it. */
static int run_before_exec(void *arg)
{
	job_keep_raised(true);
	run_with_loan();
	ktest_check(policy_behind == SCHED_OTHER);
	return 0;
}

/* Such an exec has failed. */
static int run_behind_exec(void *arg)
{
	job_keep_raised(true);
	job_keep_raised(false);
	return run_with_late_loan(arg);
}

static void who_was_raised_too_late_is_lowered_the_next_time(void **state)
{
	need_lent_helper();
	assert_int_equal(
		ktest_in_child_for(run_with_late_loan, NULL, HANG_SECONDS), 0);
}

static void who_is_raised_for_exec_stays_raised(void **state)
{
	need_lent_helper();
	assert_int_equal(
		ktest_in_child_for(run_before_exec, NULL, HANG_SECONDS), 0);
	assert_int_equal(
		ktest_in_child_for(run_behind_exec, NULL, HANG_SECONDS), 0);
}

static bool has_exited;

/* The caller exits meanwhile. */
static int leave_after_exit(struct work *work, size_t from, size_t to)
{
	uint64_t since_ns = ktest_now_ns();
	int index;

	if (!work_is_helper(work)) {
		has_exited = true;
		exit(1);
	}
	index = lent_threads_enter(&inside);
	while (sched_getscheduler(0) == SCHED_IDLE &&
	       ktest_now_ns() - since_ns < HANG_NS)
		nap_us(100);
	lent_threads_leave(&inside, index);
	policy_behind = sched_getscheduler(0);
	set_flag(&helper_is_done);
	return 0;
}

/* The destructor of the library, which raises helpers, was before this one. */
__attribute__((destructor(101))) static void check_helper(void)
{
	if (has_exited)
		_exit(!wait_for_flag(&helper_is_done) ||
		      policy_behind != SCHED_OTHER);
}

static int exit_in_chunk(void *arg)
{
	struct work work = { .also = leave_after_exit, .meet = true };

	ktest_check(!work_met());
	ktest_check(prio_mode() == PRIO_LEND);
	forget_overload();
	work_begin(&work, 2);
	work_run(&work);
	return 1;
}

static void who_is_raised_for_exit_stays_raised(void **state)
{
	need_lent_helper();
	assert_int_equal(ktest_in_child_for(exit_in_chunk, NULL, HANG_SECONDS),
			 0);
}

/* More than there is room for enter and leave all the same. */
static void further_ones_are_lent_nothing(void **state)
{
	int indices[LENT_THREADS_MAX + 1];

	for (int i = 0; i <= LENT_THREADS_MAX; i++)
		indices[i] = lent_threads_enter(&inside);
	assert_int_equal(indices[LENT_THREADS_MAX], -1);
	for (int i = 0; i <= LENT_THREADS_MAX; i++)
		lent_threads_leave(&inside, indices[i]);
	assert_int_equal(inside.nr, 0);
}

KTEST_MAIN(KTEST(who_is_inside_is_raised),
	   KTEST(who_was_raised_too_late_is_lowered_the_next_time),
	   KTEST(who_is_raised_for_exec_stays_raised),
	   KTEST(who_is_raised_for_exit_stays_raised),
	   KTEST(further_ones_are_lent_nothing))
