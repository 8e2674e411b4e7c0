/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The first job of a process ends although none of the threads that are made
 * for it gets a CPU: on a busy machine that takes longer than many a job.
 *
 * Stands before pthread_create(): a new thread sleeps until the job has ended.
 */
#include "support/work.h"

#include <dlfcn.h>

#define NR_UNITS 1000
#define CHILD_SECONDS 100
#define NR_THREADS_MAX 64

typedef int create_func(pthread_t *thread, const pthread_attr_t *attr,
			void *(*func)(void *), void *arg);

static struct start {
	void *(*func)(void *);
	void *arg;
} starts[NR_THREADS_MAX];

static uint32_t nr_starts, job_has_ended;

static void *start_late(void *arg)
{
	struct start *start = arg;

	while (!__atomic_load_n(&job_has_ended, __ATOMIC_ACQUIRE))
		nap_us(1000);
	return start->func(start->arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*func)(void *), void *arg)
{
	create_func *create = (create_func *)dlsym(RTLD_NEXT, "pthread_create");
	uint32_t nr = __atomic_fetch_add(&nr_starts, 1, __ATOMIC_RELAXED);

	if (nr >= NR_THREADS_MAX)
		return EAGAIN;
	starts[nr].func = func;
	starts[nr].arg = arg;
	return create(thread, attr, start_late, &starts[nr]);
}

static int run_first_job(void *arg)
{
	struct work work = { 0 };

	work_begin(&work, NR_UNITS);
	ktest_check(!work_run(&work));
	ktest_check(work_done_once(&work));
	ktest_check(!work.nr_helper_chunks);
	set_flag(&job_has_ended);
	work_end(&work);
	return __atomic_load_n(&nr_starts, __ATOMIC_RELAXED) ? 0 : 77;
}

static void the_first_job_waits_for_none(void **state)
{
	int status = ktest_in_child_for(run_first_job, NULL, CHILD_SECONDS);

	if (status == 77 << 8)
		ktest_skip("no thread was made");
	assert_int_equal(status, 0);
}

KTEST_MAIN(KTEST(the_first_job_waits_for_none))
