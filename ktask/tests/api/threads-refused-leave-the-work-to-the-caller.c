/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where no thread or no memory can be had, the caller does the work: threads
 * refused by pthread_create, by RLIMIT_NPROC, by the pids control group; and
 * every single allocation refused in turn.
 */
#include "ktest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "failalloc.h"
#include "marks.h"

#define UNITS 50000
#define USER 65530
#define NR_RANGES 30

static struct marks marks;

static unsigned threads_of_a_job(void)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, marks_chunk, &marks, 1);

	marks_reset(&marks, UNITS);
	ktask_ctl_set_result(&ctl, &result);
	ktest_check(!ktask_run(marks.done, UNITS, &ctl));
	for (size_t i = 0; i < UNITS; i++)
		ktest_check(marks.done[i] == 1);
	return result.threads;
}

static int refuse_all_threads(void *arg)
{
	failalloc_arm_from(1, FAILALLOC_THREAD);
	ktest_check(threads_of_a_job() == 1);
	failalloc_disarm();
	/* And when they can be had again, no harm was done. */
	ktest_check(threads_of_a_job() >= 1);
	return 0;
}

static int refuse_one_thread(void *arg)
{
	failalloc_arm_for((unsigned)(intptr_t)arg, FAILALLOC_THREAD);
	ktest_check(threads_of_a_job() >= 1);
	failalloc_disarm();
	return 0;
}

static void threads_refused_by_the_c_library(void **state)
{
	assert_int_equal(ktest_in_child(refuse_all_threads, NULL), 0);
	for (intptr_t nth = 1; nth <= 4; nth++)
		assert_int_equal(ktest_in_child(refuse_one_thread, (void *)nth),
				 0);
}

static int limit_processes(void *arg)
{
	struct rlimit none = { 0, 0 };

	ktest_check(!setresuid(USER, USER, USER));
	ktest_check(!setrlimit(RLIMIT_NPROC, &none));
	ktest_check(threads_of_a_job() == 1);
	return 0;
}

static void threads_refused_by_the_process_limit(void **state)
{
	if (geteuid())
		ktest_skip("needs root to become another user");
	if (KTEST_TSAN || KTEST_ASAN)
		ktest_skip("a sanitizer starts a thread of its own");
	assert_int_equal(ktest_in_child(limit_processes, NULL), 0);
}

static bool put_file(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 &&
		    write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Into a group that is full with this process alone. */
static int fill_group(void *arg)
{
	char file[128];

	snprintf(file, sizeof(file), "%s/cgroup.procs", (char *)arg);
	if (!put_file(file, "0"))
		return 77;
	ktest_check(threads_of_a_job() == 1);
	return 0;
}

static void threads_refused_by_the_pids_group(void **state)
{
	char group[64], file[128];
	int status = 77 << 8;

	if (KTEST_TSAN || KTEST_ASAN)
		ktest_skip("a sanitizer starts a thread of its own");
	snprintf(group, sizeof(group), "/sys/fs/cgroup/pids/ktask-test-%d",
		 getpid());
	if (access("/sys/fs/cgroup/pids", F_OK))
		snprintf(group, sizeof(group), "/sys/fs/cgroup/ktask-test-%d",
			 getpid());
	if (mkdir(group, 0755))
		ktest_skip("no control group can be made here");
	snprintf(file, sizeof(file), "%s/pids.max", group);
	if (put_file(file, "1"))
		status = ktest_in_child(fill_group, group);
	rmdir(group);
	if (status == 77 << 8)
		ktest_skip("no pids controller");
	assert_int_equal(status, 0);
}

/* Ranges and helpers that need memory, which the nth time is not there. */
static int refuse_nth(void *arg)
{
	struct ktask_node nodes[NR_RANGES];
	unsigned failed;
	int error;
	DEFINE_KTASK_CTL(ctl, marks_chunk, &marks, 1);

	ktask_ctl_set_undo_func(&ctl, marks_undo);
	marks_reset(&marks, UNITS);
	if (((intptr_t)arg & 1)) {
		marks.fail_at = UNITS / 2;
		marks.error = -EIO;
	}
	for (int i = 0; i < NR_RANGES; i++)
		nodes[i] =
			(struct ktask_node){ marks.done + UNITS / NR_RANGES * i,
					     UNITS / NR_RANGES, 0 };
	marks.nr = UNITS / NR_RANGES * NR_RANGES;
	failalloc_arm((unsigned)((intptr_t)arg >> 1));
	error = ktask_run_numa(nodes, NR_RANGES, &ctl);
	failed = failalloc_disarm();
	ktest_check(error == marks.error || (failed && error == -ENOMEM));
	for (size_t i = 0; i < marks.nr; i++) {
		/* Refused for want of memory, it did nothing. */
		ktest_check(marks.done[i] == (error != -ENOMEM) || marks.error);
		ktest_check(marks.undone[i] == (error ? marks.done[i] : 0));
	}
	return failed ? 0 : 42;
}

static void each_allocation_may_fail(void **state)
{
	for (intptr_t fails = 0; fails < 2; fails++) {
		intptr_t nth = 0;
		int status;

		do {
			nth++;
			status = ktest_in_child(refuse_nth,
						(void *)(nth << 1 | fails));
			assert_true(status == 0 || status == 42 << 8);
		} while (!status);
		/* The ranges at least; more where the table is made. */
		assert_true(nth > 1);
	}
}

/* The first jobs of a process need none. */
#define JOBS_MOST 100

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

static void start_says_enomem(void **state)
{
	struct ktask_job *jobs[JOBS_MOST];
	unsigned nr = 0;
	unsigned failed;
	int error;
	DEFINE_KTASK_CTL(ctl, do_nothing, NULL, 1);

	do {
		failalloc_arm_for(1, FAILALLOC_MEMORY);
		error = ktask_start(&jobs[nr], (void *)1, 1, &ctl);
		failed = failalloc_disarm();
	} while (!error && ++nr < JOBS_MOST);
	assert_int_equal(error, -ENOMEM);
	assert_int_equal(failed, 1);
	assert_null(jobs[nr]);
	while (nr--)
		assert_int_equal(ktask_wait(jobs[nr]), 0);
}

KTEST_MAIN(KTEST(threads_refused_by_the_c_library),
	   KTEST(threads_refused_by_the_process_limit),
	   KTEST(threads_refused_by_the_pids_group),
	   KTEST(each_allocation_may_fail), KTEST(start_says_enomem))
