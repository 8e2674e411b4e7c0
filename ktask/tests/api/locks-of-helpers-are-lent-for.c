/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper of the lowest priority that holds a lock across system calls is lent the
 * priority of the thread that waits for the lock, and gives it back with the lock, or with
 * the next one if it was lent something too late.  As with any lock, one thread at a time
 * has it.
 */
#include "support/work.h"

#include "ops/lent_lock.h"

#define NR_THREADS 4
#define NR_TURNS 2000

static struct lent_lock lock;
static uint32_t is_held, is_over;
static int policy_while_waited_for, policy_behind;
static unsigned nr_turns;

/* Until it is raised, or for long. */
static bool await_loan(void)
{
	uint64_t since_ns = ktest_now_ns();

	while (sched_getscheduler(0) == SCHED_IDLE)
		if (ktest_now_ns() - since_ns > HANG_NS)
			return false;
	return true;
}

static void *hold_at_lowest(void *arg)
{
	prio_lower();
	lent_lock_acquire(&lock);
	set_flag(&is_held);
	await_loan();
	policy_while_waited_for = sched_getscheduler(0);
	lent_lock_release(&lock);
	wait_for_flag(&is_over);
	/* It may have been lent again in that moment, and then keeps that until it has
	 * had the lock once more. */
	lent_lock_acquire(&lock);
	lent_lock_release(&lock);
	policy_behind = sched_getscheduler(0);
	return NULL;
}

/* The mode is known from the first helper on. */
static int wait_for_holder(void *arg)
{
	pthread_t holder;

	ktest_check(!work_met());
	ktest_check(prio_mode() == PRIO_LEND);
	lent_lock_init(&lock);
	ktest_check(!pthread_create(&holder, NULL, hold_at_lowest, NULL));
	ktest_check(wait_for_flag(&is_held));
	lent_lock_acquire(&lock);
	lent_lock_release(&lock);
	/* From here on nobody lends. */
	set_flag(&is_over);
	pthread_join(holder, NULL);
	ktest_check(policy_while_waited_for == SCHED_OTHER);
	ktest_check(policy_behind == SCHED_IDLE);
	ktest_check(sched_getscheduler(0) == SCHED_OTHER);
	lent_lock_destroy(&lock);
	return 0;
}

static void the_holder_is_raised(void **state)
{
	need_lent_helper();
	assert_int_equal(
		ktest_in_child_for(wait_for_holder, NULL, HANG_SECONDS), 0);
}

static uint32_t helper_is_done;

/* A loan that comes when it has released the lock.  The caller leaves the lock alone: it
 * would lend once more to a helper that gets no CPU just before it releases it. */
static int release_before_loan(struct work *work, size_t from, size_t to)
{
	const struct prio own = { .policy = SCHED_OTHER };

	if (!work_is_helper(work))
		return wait_for_flag(&helper_is_done) ? 0 : -ETIME;
	ktest_check(prio_lend(gettid(), &own));
	lent_lock_acquire(&lock);
	lent_lock_release(&lock);
	policy_behind = sched_getscheduler(0);
	set_flag(&helper_is_done);
	return 0;
}

static int run_with_late_loan(void *arg)
{
	struct work work = { .also = release_before_loan, .meet = true };

	ktest_check(!work_met());
	ktest_check(prio_mode() == PRIO_LEND);
	lent_lock_init(&lock);
	/* A helper may have starved before the two met. */
	forget_overload();
	work_begin(&work, 2);
	ktest_check(!work_run(&work));
	work_end(&work);
	lent_lock_destroy(&lock);
	ktest_check(policy_behind == SCHED_IDLE);
	ktest_check(sched_getscheduler(0) == SCHED_OTHER);
	return 0;
}

static void who_was_raised_too_late_is_lowered_with_the_next_lock(void **state)
{
	need_lent_helper();
	assert_int_equal(
		ktest_in_child_for(run_with_late_loan, NULL, HANG_SECONDS), 0);
}

static void *take_turns(void *arg)
{
	for (unsigned i = 0; i < NR_TURNS; i++) {
		lent_lock_acquire(&lock);
		nr_turns++;
		lent_lock_release(&lock);
	}
	return NULL;
}

static void one_thread_at_a_time_has_it(void **state)
{
	pthread_t threads[NR_THREADS];

	lent_lock_init(&lock);
	for (unsigned i = 0; i < NR_THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, take_turns, NULL), 0);
	for (unsigned i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(nr_turns, NR_THREADS * NR_TURNS);
	lent_lock_destroy(&lock);
}

KTEST_MAIN(KTEST(the_holder_is_raised),
	   KTEST(who_was_raised_too_late_is_lowered_with_the_next_lock),
	   KTEST(one_thread_at_a_time_has_it))
