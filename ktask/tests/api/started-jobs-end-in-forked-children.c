/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job that was started before a fork goes on in the parent.  Its copy in the
 * child ends with -ECANCELED when waited for, whoever had claimed what, and
 * undoes nothing; the child can do jobs of its own.
 */
#include "ktest.h"
#include "jobs.h"

#include <errno.h>

#define NR_FORKS 40
#define NR_JOBS 5
#define ALL_WELL 42
#define SECONDS 30

static uint32_t nr_undone;
static uint64_t random_state;

static void count_undo(void *start, void *end, void *arg)
{
	__atomic_add_fetch(&nr_undone, 1, __ATOMIC_RELAXED);
}

/* Takes 20 ms when one thread does it. */
static int do_slowly(void *start, void *end, void *arg)
{
	usleep((useconds_t)((uintptr_t)end - (uintptr_t)start) * 10);
	return tally_do(start, end, arg);
}

static struct ktask_job *start_job(struct tally *tally,
				   struct ktask_result *result)
{
	DEFINE_KTASK_CTL(ctl, do_slowly, tally, 10);
	struct ktask_job *job;

	memset(tally, 0, sizeof(*tally));
	ktask_ctl_set_undo_func(&ctl, count_undo);
	ktask_ctl_set_result(&ctl, result);
	assert_int_equal(ktask_start(&job, NULL, TALLY_UNITS, &ctl), 0);
	return job;
}

static void pause_a_while(void)
{
	usleep((useconds_t)ktest_random_below(&random_state, 5000));
}

static int wait_in_child(void *arg)
{
	ktest_check(ktask_wait(arg) == -ECANCELED);
	ktest_check(!nr_undone);
	for (int i = 0; i < 3; i++)
		ktest_check(job_works());
	return ALL_WELL;
}

/* Jobs of the child's own, before and while the copy is still there. */
static int wait_late_in_child(void *arg)
{
	struct ktask_progress progress = KTASK_PROGRESS_INIT;
	struct ktask_job *own;
	struct tally tally = { 0 };
	DEFINE_KTASK_CTL(ctl, tally_do, &tally, 10);

	ktest_check(job_works());
	ktest_check(!ktask_start(&own, NULL, TALLY_UNITS, &ctl));
	ktask_poll(arg, &progress);
	ktest_check(progress.units_total == TALLY_UNITS);
	ktask_cancel(arg);
	ktest_check(ktask_wait(arg) == -ECANCELED);
	ktest_check(!ktask_wait(own));
	ktest_check(tally_is(&tally, 1));
	ktest_check(!nr_undone);
	return ALL_WELL;
}

static int cancel_in_child(void *arg)
{
	ktask_cancel(arg);
	ktest_check(ktask_wait(arg) == -ECANCELED);
	ktest_check(!nr_undone);
	ktest_check(job_works());
	return ALL_WELL;
}

static int leave_it(void *arg)
{
	ktest_check(job_works());
	return ALL_WELL;
}

static void fork_while_started(int (*in_child)(void *job))
{
	static struct tally tally;

	for (int i = 0; i < NR_FORKS; i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_job *job = start_job(&tally, &result);

		pause_a_while();
		assert_int_equal(ktest_in_child_for(in_child, job, SECONDS),
				 ALL_WELL << 8);
		assert_int_equal(ktask_wait(job), 0);
		assert_true(tally_is(&tally, 1));
		assert_int_equal(result.units, TALLY_UNITS);
	}
	assert_int_equal(nr_undone, 0);
}

static void waiting_in_the_child_ends_the_copy(void **state)
{
	fork_while_started(wait_in_child);
}

static void the_copy_does_not_disturb_others(void **state)
{
	fork_while_started(wait_late_in_child);
}

static void cancelling_in_the_child_is_the_childs(void **state)
{
	fork_while_started(cancel_in_child);
}

static void a_copy_that_nobody_waits_for_does_no_harm(void **state)
{
	fork_while_started(leave_it);
}

static int wait_for_all_in_child(void *arg)
{
	struct ktask_job **jobs = arg;

	for (int i = 0; i < NR_JOBS; i++)
		ktest_check(ktask_wait(jobs[i]) == -ECANCELED);
	ktest_check(job_works());
	return ALL_WELL;
}

static void many_copies_end_too(void **state)
{
	static struct tally tallies[NR_JOBS];
	struct ktask_job *jobs[NR_JOBS];

	for (int i = 0; i < NR_JOBS; i++)
		jobs[i] = start_job(&tallies[i], NULL);
	pause_a_while();
	assert_int_equal(
		ktest_in_child_for(wait_for_all_in_child, jobs, SECONDS),
		ALL_WELL << 8);
	for (int i = 0; i < NR_JOBS; i++) {
		assert_int_equal(ktask_wait(jobs[i]), 0);
		assert_true(tally_is(&tallies[i], 1));
	}
}

static int seed_random(void **state)
{
	random_state = ktest_seed();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(waiting_in_the_child_ends_the_copy),
		KTEST(the_copy_does_not_disturb_others),
		KTEST(cancelling_in_the_child_is_the_childs),
		KTEST(a_copy_that_nobody_waits_for_does_no_harm),
		KTEST(many_copies_end_too),
	};

	return cmocka_run_group_tests(tests, seed_random, NULL);
}
