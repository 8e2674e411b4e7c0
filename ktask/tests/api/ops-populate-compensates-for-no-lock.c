/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads that populate memory and wait for the lock of the process's mappings are not
 * replaced: whoever came in their place would wait for the same lock, and to make a thread
 * for it takes that lock for writing.  Another thread of the program maps memory all the
 * time here.
 *
 * Stands before pthread_create(), to count.
 */
#include "ktest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pages.h"

#define LEN (64 * MIB)
#define NR_JOBS 100
/* The jobs go on until so much time has passed, at most. */
#define MOST_NS 20000000000ull

typedef int create_func(pthread_t *thread, const pthread_attr_t *attr,
			void *(*func)(void *), void *arg);

static uint32_t nr_threads, is_over;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*func)(void *), void *arg)
{
	create_func *create = (create_func *)dlsym(RTLD_NEXT, "pthread_create");

	__atomic_add_fetch(&nr_threads, 1, __ATOMIC_RELAXED);
	return create(thread, attr, func, arg);
}

static unsigned threads_made(void)
{
	return __atomic_load_n(&nr_threads, __ATOMIC_RELAXED);
}

static void *map_all_the_time(void *arg)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		munmap(map_private(MIB), MIB);
		usleep(50);
	}
	return NULL;
}

static void populate_once(char *at)
{
	ktest_check(!ktask_populate(at, LEN, 0));
	ktest_check(!madvise(at, LEN, MADV_DONTNEED));
}

static int do_jobs(void *arg)
{
	char *at = map_private(LEN);
	uint64_t begin_ns;
	pthread_t mapper;
	unsigned made;

	populate_once(at);
	ktest_check(!pthread_create(&mapper, NULL, map_all_the_time, NULL));
	made = threads_made();
	begin_ns = ktest_now_ns();
	for (int i = 0; i < NR_JOBS && ktest_now_ns() - begin_ns < MOST_NS; i++)
		populate_once(at);
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	pthread_join(mapper, NULL);
	ktest_check(threads_made() <= made);
	return 0;
}

static void no_thread_is_made_in_a_job(void **state)
{
	/* Who may not raise threads has helpers only on CPUs that idle. */
	if (geteuid())
		ktest_skip("without rights helpers are made late");
	assert_int_equal(ktest_in_child_for(do_jobs, NULL, 100), 0);
}

KTEST_MAIN(KTEST(no_thread_is_made_in_a_job))
