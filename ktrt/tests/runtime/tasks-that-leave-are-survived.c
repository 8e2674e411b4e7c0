/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task that leaves by pthread_exit() fails with -ECANCELED and its worker is
 * replaced; one that calls exit() ends the process with that status; the child
 * of a fork has no runtime, may start its own, and ends if the task returns.
 */
#include "support/runs.h"

#include "threads.h"

#include <pthread.h>
#include <sys/wait.h>

static unsigned long ran;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static int leave_task(void *arg)
{
	pthread_exit(NULL);
}

/* Also in the middle of what it waits for, and with children of its own. */
static int leave_below(void *arg)
{
	if (ktrt_spawn(count_task, NULL) || ktrt_spawn(leave_task, NULL))
		return -EIO;
	ktrt_wait();
	return 0;
}

static void leavers_are_replaced(void)
{
	struct ktrt_dep dep = { &ran, 0, KTRT_OUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	set(ran, 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(ktrt_spawn_attr(leave_task, NULL, &attr), 0);
		assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
		assert_int_equal(ktrt_spawn(leave_below, NULL), 0);
	}
	assert_int_equal(ktrt_wait(), -ECANCELED);
	assert_int_equal(get(ran), 40);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ktrt_run(leave_task, NULL), -ECANCELED);
}

static void by_pthread_exit(void **state)
{
	in_each_way(leavers_are_replaced);
}

static int exit_3(void *arg)
{
	exit(3);
}

static int start_and_exit(void *arg)
{
	ktest_check(!ktrt_start(NULL));
	for (int i = 0; i < 100; i++)
		ktest_check(!ktrt_spawn(count_task, NULL));
	ktrt_run(exit_3, NULL);
	return 1;
}

static void by_exit(void **state)
{
	int status = ktest_in_child(start_and_exit, NULL);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
}

/* With the thread sanitizer the status tells of threads that nobody has joined. */
static int exit_late(void *arg)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	ktest_check(!ktrt_start(NULL));
	do
		ktest_check(!ktrt_info_get(&info));
	while (!strcmp(info.backend, "loading") && (nap_us(1000), true));
	nap_us(300000);
	exit(3);
}

static void by_exit_after_umt(void **state)
{
	int status = ktest_in_child(exit_late, NULL);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
}

static int use_again(void)
{
	if (ktrt_spawn(count_task, NULL) != -ESRCH || ktrt_wait() != -ESRCH ||
	    ktrt_stop() != -ESRCH || ktrt_self())
		return 4;
	if (ktrt_start(NULL) || ktrt_spawn(count_task, NULL) || ktrt_wait() ||
	    ktrt_stop())
		return 5;
	return 0;
}

static int fork_here(void *arg)
{
	int *returns = arg;
	pid_t pid;

	if (KTEST_ASAN)
		threads_let_begin();
	pid = fork();

	if (!pid && !*returns)
		_exit(use_again());
	if (!pid)
		return 7; /* which nobody is to see */
	return ktest_wait_for(pid, 60);
}

static void by_fork(void **state)
{
	int returns = 0;

	if (KTEST_TSAN)
		ktest_skip("thread sanitizer: no threads after a fork");
	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(ktrt_run(fork_here, &returns), 0);
	assert_int_equal(fork_here(&returns), 0);
	/* It would report what the test program itself did not free. */
	returns = !KTEST_ASAN;
	assert_int_equal(ktrt_run(fork_here, &returns), 0);
	assert_int_equal(ktrt_spawn(count_task, NULL), 0);
	assert_int_equal(ktrt_stop(), 0);
}

/*
 * The children that leave by exit() are made first: the thread of UMT that uses perf
 * outlives a runtime, and the thread sanitizer keeps it in its list of threads after a
 * fork, where a new thread of the child gets the same address.
 */
KTEST_MAIN(KTEST(by_exit), KTEST(by_exit_after_umt), KTEST(by_pthread_exit),
	   KTEST(by_fork))
