/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * scx_ktask schedules from when it says so until it ends, however it ends.
 */
#include <signal.h>
#include <sys/wait.h>

#include "ktest.h"
#include "scheduler_process.h"

static int load_second(void *arg)
{
	execl("/bin/scx_ktask", "scx_ktask", (char *)NULL);
	return 126;
}

static void is_there_once(void **state)
{
	pid_t pid = scheduler_start();
	int status = ktest_in_child(load_second, NULL);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_true(scheduler_runs());
	assert_int_equal(scheduler_end(pid, SIGINT), 0);
}

static void does_not_outlive_its_process(void **state)
{
	pid_t pid = scheduler_start();
	int status = scheduler_end(pid, SIGKILL);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* The second also shows that another may follow one that was killed. */
KTEST_MAIN(KTEST(does_not_outlive_its_process), KTEST(is_there_once))
