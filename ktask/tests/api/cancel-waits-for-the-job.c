/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that is cancelled while it runs a job ends after the job: every
 * unit is done, whatever the chunks call.  Each call leaves the thread's
 * cancellation state as it was, also when it fails.
 */
#include "ktest.h"
#include "jobs.h"

#include <errno.h>
#include <pthread.h>

#define NR_ROUNDS 30

static pthread_t victim;

/* What the victim runs, and how far it came. */
struct course {
	int (*run)(struct once *once);
	struct once once;
	int error;
	bool returned;
	bool survived;
};

/* A point where a thread ends that was cancelled, were it not put off. */
static int cancel_victim(void *arg)
{
	if (pthread_cancel(victim))
		return -ESRCH;
	usleep(100);
	pthread_testcancel();
	return 0;
}

static int run_inner(void *arg)
{
	return cancel_victim(arg) || !job_works() ? -EPROTO : 0;
}

/* Until the thread that waits has had a chunk: helpers may do it all. */
static int start_and_wait(struct once *once)
{
	DEFINE_KTASK_CTL(ctl, once_chunk, once, 1);
	struct ktask_job *job;
	int error;

	do {
		once_reset(once);
		error = ktask_start(&job, NULL, TALLY_UNITS, &ctl);
		if (!error)
			error = ktask_wait(job);
	} while (!error && !once_begun(once));
	return error;
}

/* Too small to be split. */
static int run_small(struct once *once)
{
	DEFINE_KTASK_CTL(ctl, once_chunk, once, TALLY_UNITS);

	once_reset(once);
	return ktask_run(NULL, TALLY_UNITS, &ctl);
}

static void *follow_course(void *arg)
{
	struct course *course = arg;

	victim = pthread_self();
	course->error = course->run(&course->once);
	course->returned = true;
	pthread_testcancel();
	course->survived = true;
	return NULL;
}

static void follow_in_thread(struct course *course)
{
	pthread_t thread;
	void *end;

	assert_int_equal(pthread_create(&thread, NULL, follow_course, course),
			 0);
	assert_int_equal(pthread_join(thread, &end), 0);
	if (!once_begun(&course->once))
		return;
	assert_ptr_equal(end, PTHREAD_CANCELED);
	assert_true(course->returned);
	assert_int_equal(course->error, 0);
	assert_false(course->survived);
	assert_true(tally_is(&course->once.tally, 1));
}

static void cancel_often(int (*run)(struct once *once), int (*func)(void *arg),
			 bool in_helper)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		struct course course = { .run = run };

		course.once.func = func;
		course.once.in_helper = in_helper;
		follow_in_thread(&course);
		if (in_helper)
			once_need_helper(&course.once);
		assert_true(once_begun(&course.once));
	}
	assert_true(job_works());
}

static void by_a_chunk_of_its_own(void **state)
{
	cancel_often(once_run, cancel_victim, false);
}

static void by_a_chunk_of_a_helper(void **state)
{
	cancel_often(once_run, cancel_victim, true);
}

static void in_a_small_job(void **state)
{
	cancel_often(run_small, cancel_victim, false);
}

static void in_a_nested_job(void **state)
{
	cancel_often(once_run, run_inner, false);
}

static void while_it_waits_for_a_job(void **state)
{
	cancel_often(start_and_wait, cancel_victim, false);
}

/* ---- the state ---- */

static int cancel_state(void)
{
	int was, now;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	pthread_setcancelstate(was, &now);
	return was;
}

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

static int give_up(void *start, void *end, void *arg)
{
	return -EIO;
}

static void call_each(int state)
{
	struct ktask_node node = { NULL, 1000, NUMA_NO_NODE };
	DEFINE_KTASK_CTL(good, do_nothing, NULL, 1);
	DEFINE_KTASK_CTL(small, do_nothing, NULL, 1000);
	DEFINE_KTASK_CTL(failing, give_up, NULL, 1);
	DEFINE_KTASK_CTL(bad, NULL, NULL, 1);
	struct ktask_job *job;

#define RETURNS(call, value)                             \
	do {                                             \
		assert_int_equal(call, value);           \
		assert_int_equal(cancel_state(), state); \
	} while (0)
	RETURNS(ktask_run(NULL, 1000, &good), 0);
	RETURNS(ktask_run(NULL, 1000, &small), 0);
	RETURNS(ktask_run(NULL, 0, &small), 0);
	RETURNS(ktask_run(NULL, 1000, &failing), -EIO);
	RETURNS(ktask_run(NULL, 1000, &bad), -EINVAL);
	RETURNS(ktask_run((void *)1000, SIZE_MAX, &good), -EINVAL);
	RETURNS(ktask_run((void *)1001, SIZE_MAX - 1000, &small), -EINVAL);
	RETURNS(ktask_run_numa(&node, 1, &good), 0);
	RETURNS(ktask_run_numa(NULL, 1, &good), -EINVAL);
	RETURNS(ktask_start(&job, NULL, 1000, &bad), -EINVAL);
	RETURNS(ktask_start(&job, (void *)1000, SIZE_MAX, &good), -EINVAL);
	RETURNS(ktask_start(&job, NULL, 1000, &good), 0);
	RETURNS(ktask_wait(job), 0);
	RETURNS(ktask_start_numa(&job, &node, 1, &good), 0);
	RETURNS(ktask_wait(job), 0);
	RETURNS(ktask_wait(NULL), -EINVAL);
#undef RETURNS
	ktask_trim();
	assert_int_equal(cancel_state(), state);
	job_threads();
	assert_int_equal(cancel_state(), state);
	ktask_jobs(NULL, 0, NULL);
	assert_int_equal(cancel_state(), state);
}

static void each_call_leaves_the_state_as_it_was(void **state)
{
	call_each(PTHREAD_CANCEL_ENABLE);
	assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL),
			 0);
	call_each(PTHREAD_CANCEL_DISABLE);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

KTEST_MAIN(KTEST(by_a_chunk_of_its_own), KTEST(by_a_chunk_of_a_helper),
	   KTEST(in_a_small_job), KTEST(in_a_nested_job),
	   KTEST(while_it_waits_for_a_job),
	   KTEST(each_call_leaves_the_state_as_it_was))
