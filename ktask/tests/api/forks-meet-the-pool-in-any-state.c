/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A fork in the middle of making a helper, inside chunks of several jobs at
 * once, or by calls that tell no handler: the child ends what it is in the
 * middle of, and then has helpers of its own.
 */
#include "support/work.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

/* So that there are helpers for the parent and for children at once. */
#define MANY_CPUS 8
#include "support/many_cpus.h"

#define NR_UNITS 200
#define ALL_WELL 42

/* In a child.  A job of two threads, and nothing of the parent's undone. */
static void new_job_has_a_helper(void)
{
	ktest_check(!work_met());
}

static void child_is_well(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	status = child_status(pid);
	assert_true(status >= 0 && WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), ALL_WELL);
}

/* ---- while another thread makes a helper ---- */

static uint32_t hold_maker, maker_is_held;
static pid_t maker;

/* Called once a helper's place is taken and before its thread exists. */
int pthread_attr_setinheritsched(pthread_attr_t *attr, int inherit)
{
	int (*real)(pthread_attr_t *, int) =
		(int (*)(pthread_attr_t *, int))dlsym(
			RTLD_NEXT, "pthread_attr_setinheritsched");

	if (gettid() == maker &&
	    __atomic_load_n(&hold_maker, __ATOMIC_ACQUIRE)) {
		set_flag(&maker_is_held);
		while (__atomic_load_n(&hold_maker, __ATOMIC_ACQUIRE))
			nap_us(50);
	}
	return real(attr, inherit);
}

static void *make_helpers(void *error)
{
	maker = gettid();
	*(int *)error = work_met();
	return NULL;
}

static void while_a_helper_is_made(void **state)
{
	pthread_t thread;
	int error = -1;
	pid_t pid;

	need_sure_helper();
	ktask_trim();
	set_flag(&hold_maker);
	assert_int_equal(pthread_create(&thread, NULL, make_helpers, &error),
			 0);
	assert_true(wait_for_flag(&maker_is_held));
	pid = fork();
	if (!pid) {
		new_job_has_a_helper();
		_exit(ALL_WELL);
	}
	__atomic_store_n(&hold_maker, 0, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(error, 0);
	child_is_well(pid);
}

/* ---- inside chunks ---- */

enum how { FORK, FORK_BARE, CLONE };

static pid_t fork_by(enum how how)
{
	switch (how) {
	case FORK_BARE:
		return _Fork();
	case CLONE:
		return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	default:
		return fork();
	}
}

struct forking {
	enum how how;
	bool helper; /* forks, not the caller */
	int (*in_child)(void); /* still in the chunk */
	uint32_t forked;
	pid_t pid, parent;
};

/* The other thread is in its chunk, too, and stays there in the parent. */
static int fork_once(struct work *work, size_t from, size_t to)
{
	struct forking *forking = work->arg;
	pid_t pid;

	burn_us(20);
	/* The first of those that may. */
	if (work_is_helper(work) != forking->helper ||
	    __atomic_exchange_n(&forking->forked, 1, __ATOMIC_RELAXED))
		return 0;
	pid = fork_by(forking->how);
	if (pid)
		forking->pid = pid;
	return !pid && forking->in_child ? forking->in_child() : 0;
}

static bool in_child(const struct forking *forking)
{
	return getpid() != forking->parent;
}

static void end_child(const struct work *work, int error)
{
	ktest_check(error == -ECANCELED);
	for (size_t i = 0; i < work->nr_units; i++)
		ktest_check(!work->undone[i]);
	new_job_has_a_helper();
	_exit(ALL_WELL);
}

static void fork_in_chunk(enum how how, int (*in_child_too)(void))
{
	struct forking forking = { .how = how,
				   .in_child = in_child_too,
				   .parent = getpid() };
	struct work work = { .also = fork_once, .arg = &forking, .meet = true };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	int error;

	work_begin(&work, NR_UNITS);
	ktask_ctl_set_max_threads(&ctl, 2);
	error = ktask_run(WORK_BASE, NR_UNITS, &ctl);
	if (in_child(&forking))
		end_child(&work, error);
	assert_int_equal(error, 0);
	assert_true(work_done_once(&work));
	child_is_well(forking.pid);
	work_end(&work);
}

static void in_a_chunk(void **state)
{
	need_sure_helper();
	fork_in_chunk(FORK, NULL);
}

static void in_a_chunk_that_no_handler_sees(void **state)
{
	need_sure_helper();
	if (KTEST_TSAN || KTEST_ASAN)
		ktest_skip("sanitizers must know of forks");
	fork_in_chunk(FORK_BARE, NULL);
	fork_in_chunk(CLONE, NULL);
}

/* The outer job's helper, which counts against its number, is not there. */
static void a_chunk_of_the_child_has_helpers(void **state)
{
	need_sure_helper();
	fork_in_chunk(FORK, work_met);
}

/* In a helper: then the thread that could return is not there. */
static int met_or_exit(void)
{
	_exit(work_met() ? 1 : ALL_WELL);
}

static void in_a_chunk_of_a_helper(void **state)
{
	struct forking forking = { .helper = true,
				   .in_child = met_or_exit,
				   .parent = getpid() };
	struct work work = { .also = fork_once, .arg = &forking, .meet = true };

	need_sure_helper();
	work_begin(&work, NR_UNITS);
	assert_int_equal(work_run(&work), 0);
	assert_true(work_done_once(&work));
	child_is_well(forking.pid);
	work_end(&work);
}

/* ---- inside a started job that a chunk waits for ---- */

static int wait_for_inner(struct work *outer, size_t from, size_t to)
{
	struct work *inner = outer->arg;
	struct ktask_ctl ctl = work_ctl(inner, 1);
	struct ktask_job *job;
	int error;

	burn_us(20);
	if (work_is_helper(outer) || inner->done)
		return 0;
	work_begin(inner, NR_UNITS);
	ktask_ctl_set_max_threads(&ctl, 1);
	error = ktask_start(&job, WORK_BASE, NR_UNITS, &ctl);
	return error ? error : ktask_wait(job);
}

/* The child must leave both jobs. */
static void in_a_started_job_inside_a_chunk(void **state)
{
	struct forking forking = { .parent = getpid() };
	struct work inner = { .also = fork_once, .arg = &forking };
	struct work outer = { .also = wait_for_inner,
			      .arg = &inner,
			      .meet = true };
	int error;

	need_sure_helper();
	work_begin(&outer, NR_UNITS);
	error = work_run(&outer);
	if (in_child(&forking))
		end_child(&outer, error);
	assert_int_equal(error, 0);
	assert_true(work_done_once(&outer));
	assert_true(work_done_once(&inner));
	child_is_well(forking.pid);
	work_end(&outer);
	work_end(&inner);
}

/* ---- between start and wait ---- */

static void start_and_fork(enum how how)
{
	struct work work = { 0 };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_job *job;
	pid_t pid;

	work_begin(&work, NR_UNITS);
	assert_int_equal(ktask_start(&job, WORK_BASE, NR_UNITS, &ctl), 0);
	pid = fork_by(how);
	if (!pid)
		end_child(&work, ktask_wait(job));
	assert_int_equal(ktask_wait(job), 0);
	assert_true(work_done_once(&work));
	child_is_well(pid);
	work_end(&work);
}

static void between_start_and_wait(void **state)
{
	need_sure_helper();
	for (int i = 0; i < 20; i++)
		start_and_fork(FORK);
	if (KTEST_TSAN || KTEST_ASAN)
		return;
	for (int i = 0; i < 20; i++)
		start_and_fork(i % 2 ? FORK_BARE : CLONE);
}

/* ---- from many threads, at any time ---- */

static void *fork_often(void *arg)
{
	int nr_bad = 0;

	for (int i = 0; i < 30; i++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			new_job_has_a_helper();
			_exit(ALL_WELL);
		}
		status = pid > 0 ? child_status(pid) : -1;
		nr_bad += status != ALL_WELL << 8;
	}
	*(int *)arg = nr_bad;
	return NULL;
}

static void beside_jobs_trims_and_other_forks(void **state)
{
	pthread_t threads[3];
	int nr_bad[3];

	/* Seen: the child waits for the lock of the sanitizer's statistics,
	 * which a thread of the parent held to begin or end. */
	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("a fork beside allocations and new threads takes "
			   "the sanitizer's locks along");
	need_sure_helper();
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fork_often,
						&nr_bad[i]),
				 0);
	for (int i = 0; i < 300; i++) {
		struct work work = { 0 };

		work_begin(&work, NR_UNITS);
		assert_int_equal(work_run(&work), 0);
		assert_true(work_done_once(&work));
		work_end(&work);
		if (i % 10 == 0)
			ktask_trim();
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(nr_bad[i], 0);
	}
}

KTEST_MAIN(KTEST(while_a_helper_is_made), KTEST(in_a_chunk),
	   KTEST(in_a_chunk_that_no_handler_sees),
	   KTEST(a_chunk_of_the_child_has_helpers),
	   KTEST(in_a_chunk_of_a_helper),
	   KTEST(in_a_started_job_inside_a_chunk),
	   KTEST(between_start_and_wait),
	   KTEST(beside_jobs_trims_and_other_forks))
