/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fork() inside a chunk: the parent's job is done as if nothing had happened.
 * The child's ends with -ECANCELED and is not undone, and its library works.
 * The same for forks between jobs, and beside the job of another thread.
 */
#include "ktest.h"
#include "jobs.h"
#include "threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "user/pool/user_pool.h"

#define SECONDS 30
/* A child that sleeps a thousand times waits for a CPU as often. */
#define CHILD_SECONDS 200
#define NR_FORKS 30
/* The longest that a case goes on forking: children of helpers may wait long for a CPU. */
#define FORKS_NS 40000000000ull
#define BURN_UNITS 100
/* The exit status of a child in which all is well; 0 may have other causes. */
#define ALL_WELL 42
#define NO_HELPER 43

static pid_t parent, child;
static uint32_t nr_undone;

static bool in_child(void)
{
	return getpid() != parent;
}

static void count_undo(void *start, void *end, void *arg)
{
	__atomic_add_fetch(&nr_undone, 1, __ATOMIC_RELAXED);
}

static uint64_t case_ns; /* when the first fork of this case came */

/* At least once. */
static bool forks_again(int nr_done)
{
	if (!nr_done)
		case_ns = ktest_now_ns();
	return nr_done < NR_FORKS && ktest_now_ns() - case_ns < FORKS_NS;
}

/* A job may make threads while it runs. */
static pid_t fork_beside_begun(void)
{
	uint64_t end_ns = ktest_now_ns() + SECONDS * 1000000000ull;

	while (KTEST_ASAN && !threads_all_named("ktask") &&
	       ktest_now_ns() < end_ns)
		usleep(100);
	return fork();
}

static int fork_here(void *arg)
{
	child = fork_beside_begun();
	return 0;
}

/* The process began as the helper's thread, and ends with it. */
static void helper_has_ended(void)
{
	if (in_child())
		_exit(nr_undone ? 1 : ALL_WELL);
}

static int fork_and_continue(void *arg)
{
	child = fork_beside_begun();
	if (!child) {
		ktest_check(!atexit(helper_has_ended));
		ktest_check(job_works());
	}
	return 0;
}

static void no_helper_in_child(void)
{
	if (in_child())
		_exit(NO_HELPER);
}

/* An idle one, as after a job of the child's. */
static int fork_and_have_helper(void *arg)
{
	child = fork_beside_begun();
	if (!child) {
		struct kt_cpus cpus;

		ktest_check(cpus_get_affinity(&cpus));
		pool_more(1, &cpus);
		ktest_check(!atexit(pool_helpers() ? helper_has_ended
						   : no_helper_in_child));
	}
	return 0;
}

/* The helpers begin before the job that forks. */
static void let_helpers_begin(void)
{
	if (!KTEST_ASAN && !KTEST_TSAN)
		return;
	/* Else some begin whenever a CPU idles. */
	if (!prio_may_lend())
		ktest_skip("a fork beside new threads takes the sanitizer's "
			   "locks along");
	assert_true(job_works());
	threads_let_begin();
}

static int run_forking(struct once *once)
{
	let_helpers_begin();
	parent = getpid();
	child = 0;
	once->undo = count_undo;
	return once_run(once);
}

static int judge_child(int error)
{
	ktest_check(error == -ECANCELED);
	ktest_check(!nr_undone);
	for (int i = 0; i < 3; i++)
		ktest_check(job_works());
	return ALL_WELL;
}

static void assert_child_well(void)
{
	int status = ktest_wait_for(child, CHILD_SECONDS);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), ALL_WELL);
}

static void in_a_chunk_of_the_caller(void **state)
{
	for (int i = 0; forks_again(i); i++) {
		struct once once = { .func = fork_here };
		int error = run_forking(&once);

		if (in_child())
			_exit(judge_child(error));
		assert_int_equal(error, 0);
		assert_true(tally_is(&once.tally, 1));
		assert_child_well();
		assert_true(job_works());
	}
}

/*
 * The caller stays in its chunk: between chunks it reads limits, and a fork beside
 * allocations takes a sanitizer's locks along.
 */
static void run_in_helper(int (*func)(void *arg))
{
	struct once once = { .func = func,
			     .in_helper = true,
			     .caller_stays = KTEST_ASAN };

	assert_int_equal(run_forking(&once), 0);
	once_need_helper(&once);
	assert_true(tally_is(&once.tally, 1));
}

static void in_a_chunk_of_a_helper(void **state)
{
	for (int i = 0; forks_again(i); i++) {
		run_in_helper(fork_and_continue);
		assert_child_well();
		assert_true(job_works());
	}
}

/* Helpers of the child would wait an hour for another job. */
static void in_a_chunk_of_a_helper_whose_child_gets_helpers(void **state)
{
	int status;

	if (KTEST_TSAN)
		ktest_skip("TSAN has no threads after fork");
	run_in_helper(fork_and_have_helper);
	status = ktest_wait_for(child, CHILD_SECONDS);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_HELPER)
		ktest_skip("the child may have no helper");
	assert_int_equal(WEXITSTATUS(status), ALL_WELL);
}

/* ---- a child that looks as if its job were blocked ---- */

static void burn_until(uint64_t cpu_ns)
{
	while (ktest_thread_cpu_ns() < cpu_ns)
		;
}

/* More CPU time and more waits than the parent had when the job last looked. */
static void work_and_wait(uint64_t cpu_ns, long waits)
{
	burn_until(cpu_ns + 5000000);
	for (uint64_t ms = 0; ms < cpu_ns / 200000; ms++)
		usleep(1000);
	while (waits-- > 0)
		usleep(10);
}

/* The second half, until that has forked: it may get no CPU for long. */
static int leave_to_caller(uintptr_t unit)
{
	uint64_t end_ns = ktest_now_ns() + SECONDS * 1000000000ull;

	while (unit > BURN_UNITS / 2 &&
	       !__atomic_load_n(&child, __ATOMIC_RELAXED) &&
	       ktest_now_ns() < end_ns)
		usleep(100);
	return 0;
}

static int burn_and_fork(void *start, void *end, void *arg)
{
	uint64_t fork_ns = *(uint64_t *)arg, cpu_ns = ktest_thread_cpu_ns();
	struct rusage usage;

	if (in_child())
		return 0;
	burn_until(cpu_ns + 1000000);
	if (getpid() != gettid())
		return leave_to_caller((uintptr_t)end);
	if (ktest_now_ns() < fork_ns || child)
		return 0;
	getrusage(RUSAGE_THREAD, &usage);
	__atomic_store_n(&child, fork_beside_begun(), __ATOMIC_RELAXED);
	if (!child)
		work_and_wait(ktest_thread_cpu_ns() + cpu_ns,
			      usage.ru_nvcsw + 100);
	return 0;
}

static unsigned nr_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned nr = 0;

	while (tasks && (entry = readdir(tasks)))
		nr += entry->d_name[0] != '.';
	if (tasks)
		closedir(tasks);
	return nr;
}

static void in_a_chunk_that_waits_in_the_child(void **state)
{
	uint64_t fork_ns = ktest_now_ns() + 30000000;
	DEFINE_KTASK_CTL(ctl, burn_and_fork, &fork_ns, 1);
	int error;

	let_helpers_begin();
	parent = getpid();
	child = 0;
	error = ktask_run(NULL, BURN_UNITS, &ctl);
	if (in_child()) {
		ktest_check(error == -ECANCELED);
		/* Nobody was called in who would now look at the job. */
		ktest_check(nr_threads() == 1);
		_exit(judge_child(error));
	}
	assert_int_equal(error, 0);
	assert_true(child > 0);
	assert_child_well();
}

/* ---- a job within a job ---- */

static int run_inner(void *arg)
{
	struct once inner = { .func = fork_here };
	int error = once_run(&inner);

	/* The outer job must not be undone for it either. */
	if (in_child())
		return error == -ECANCELED ? 0 : -EPROTO;
	return error || tally_is(&inner.tally, 1) ? error : -EPROTO;
}

static void in_a_chunk_of_a_nested_job(void **state)
{
	struct once outer = { .func = run_inner };
	int error = run_forking(&outer);

	if (in_child())
		_exit(judge_child(error));
	assert_int_equal(error, 0);
	assert_true(tally_is(&outer.tally, 1));
	assert_child_well();
}

/* ---- outside of chunks ---- */

static int run_jobs(void *arg)
{
	for (int i = 0; i < 3; i++)
		ktest_check(job_works());
	return ALL_WELL;
}

static void between_jobs(void **state)
{
	for (int i = 0; forks_again(i); i++) {
		assert_true(job_works());
		let_helpers_begin();
		assert_int_equal(ktest_in_child(run_jobs, NULL), ALL_WELL << 8);
	}
}

static uint32_t stop, nr_wrong;

static void *run_on(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if (!job_works())
			__atomic_add_fetch(&nr_wrong, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void beside_the_job_of_another_thread(void **state)
{
	pthread_t thread;

	if (KTEST_ASAN)
		ktest_skip("a fork beside allocations takes the sanitizer's "
			   "locks along");
	assert_int_equal(pthread_create(&thread, NULL, run_on, NULL), 0);
	for (int i = 0; forks_again(i); i++)
		assert_int_equal(ktest_in_child(run_jobs, NULL), ALL_WELL << 8);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(nr_wrong, 0);
}

/* A child that no handler has prepared. */
static void by_a_fork_without_handlers(void **state)
{
	if (KTEST_TSAN)
		ktest_skip("thread sanitizer takes such a child's memory for "
			   "its parent's");
	for (int i = 0; forks_again(i); i++) {
		assert_true(job_works());
		child = _Fork();
		if (!child)
			_exit(run_jobs(NULL));
		assert_child_well();
	}
	assert_true(job_works());
}

/* No helper ends beside a fork, where a sanitizer's locks would be taken along as well;
 * and no child ends because its helpers do. */
__attribute__((constructor)) static void keep_helpers(void)
{
	setenv("KTASK_IDLE_MS", "3600000", 1);
}

KTEST_MAIN(KTEST(in_a_chunk_of_the_caller), KTEST(in_a_chunk_of_a_helper),
	   KTEST(in_a_chunk_of_a_helper_whose_child_gets_helpers),
	   KTEST(in_a_chunk_that_waits_in_the_child),
	   KTEST(in_a_chunk_of_a_nested_job), KTEST(between_jobs),
	   KTEST(beside_the_job_of_another_thread),
	   KTEST(by_a_fork_without_handlers))
