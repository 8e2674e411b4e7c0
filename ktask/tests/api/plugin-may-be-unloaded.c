/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that is not linked with the library may load it, run jobs, and
 * close it again, any number of times, also while helpers idle or end.
 *
 * The archive that tests are linked with lies idle beside it.
 */
#include "ktest.h"

#include <dlfcn.h>
#include <string.h>

#include <ktask/ktask.h>

#define NR_ROUNDS 50
#define NR_UNITS 1000
#define ALL_WELL 42

typedef int (*run_func)(void *, size_t, const struct ktask_ctl *);
typedef int (*start_func)(struct ktask_job **, void *, size_t,
			  const struct ktask_ctl *);
typedef int (*wait_func)(struct ktask_job *);

static int counts[NR_UNITS];

static int count_chunk(void *start, void *end, void *arg)
{
	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++)
		__atomic_add_fetch(&counts[i], 1, __ATOMIC_RELAXED);
	return 0;
}

/* Takes the counts back to 0. */
static void check_counts(void)
{
	for (int i = 0; i < NR_UNITS; i++)
		ktest_check(__atomic_exchange_n(&counts[i], 0,
						__ATOMIC_RELAXED) == 1);
}

/* The library that was built with this test, two directories up. */
static void *load_library(void)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);
	void *library;

	ktest_check(len > 0);
	path[len] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = '\0';
	strcat(path, "/libktask.so");
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fprintf(stderr, "# %s\n", dlerror());
	ktest_check(library);
	return library;
}

static void run_job(void *library)
{
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 10);
	run_func run;

	*(void **)&run = dlsym(library, "ktask_run");
	ktest_check(run);
	ktest_check(!run(NULL, NR_UNITS, &ctl));
	check_counts();
}

/* Closed while helpers are at work. */
static void start_and_wait(void *library)
{
	DEFINE_KTASK_CTL(ctl, count_chunk, NULL, 10);
	struct ktask_job *job;
	start_func start;
	wait_func wait;

	*(void **)&start = dlsym(library, "ktask_start");
	*(void **)&wait = dlsym(library, "ktask_wait");
	ktest_check(start && wait);
	ktest_check(!start(&job, NULL, NR_UNITS, &ctl));
	ktest_check(!dlclose(load_library()));
	ktest_check(!wait(job));
	check_counts();
}

static void load_and_unload(useconds_t pause_us)
{
	void *library;

	for (int i = 0; i < NR_ROUNDS; i++) {
		library = load_library();
		run_job(library);
		start_and_wait(library);
		ktest_check(!dlclose(library));
		usleep(pause_us);
	}
	library = load_library();
	run_job(library);
	ktest_check(!dlclose(library));
}

static int load_often(void *arg)
{
	load_and_unload(0);
	return ALL_WELL;
}

/* Helpers wake up and end when the library has been closed. */
static int rounds_with_ending_helpers(void *arg)
{
	setenv("KTASK_IDLE_MS", "1", 1);
	load_and_unload(3000);
	return ALL_WELL;
}

/* Handlers and destructors of a library that has been closed. */
static int rounds_and_exit(void *arg)
{
	load_and_unload(0);
	exit(ALL_WELL);
}

static int load_and_leave(void *arg)
{
	ktest_check(!dlclose(load_library()));
	exit(ALL_WELL);
}

static int close_and_fork(void *arg)
{
	load_and_unload(0);
	return ktest_in_child(load_often, NULL) == ALL_WELL << 8 ? ALL_WELL : 1;
}

static void with_jobs_between(void **state)
{
	assert_int_equal(ktest_in_child(load_often, NULL), ALL_WELL << 8);
}

static void while_helpers_end(void **state)
{
	assert_int_equal(ktest_in_child(rounds_with_ending_helpers, NULL),
			 ALL_WELL << 8);
}

static void before_the_process_exits(void **state)
{
	assert_int_equal(ktest_in_child(rounds_and_exit, NULL), ALL_WELL << 8);
	assert_int_equal(ktest_in_child(load_and_leave, NULL), ALL_WELL << 8);
}

static void before_a_fork(void **state)
{
	assert_int_equal(ktest_in_child(close_and_fork, NULL), ALL_WELL << 8);
}

KTEST_MAIN(KTEST(with_jobs_between), KTEST(while_helpers_end),
	   KTEST(before_the_process_exits), KTEST(before_a_fork))
