/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "scheduler_process.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "ktest.h"

#define SCHED_EXT "/sys/kernel/sched_ext/"
#define WAIT_SECONDS 120

static bool file_says(const char *path, const char *wanted)
{
	char line[100] = "";
	FILE *file = fopen(path, "r");

	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return !strncmp(line, wanted, strlen(wanted)) &&
	       strcspn(line, "\n") == strlen(wanted);
}

bool scheduler_is(const char *state)
{
	return file_says(SCHED_EXT "state", state);
}

bool scheduler_runs(void)
{
	return scheduler_is("enabled") &&
	       file_says(SCHED_EXT "root/ops", "ktask");
}

static int counts_fd = -1; /* what it says at its end */

static void become_scheduler(int out)
{
	dup2(out, STDOUT_FILENO);
	execl("/bin/scx_ktask", "scx_ktask", "--verbose", (char *)NULL);
	_exit(126);
}

pid_t scheduler_start(void)
{
	char said[100] = "";
	int out[2];
	pid_t pid;

	assert_true(scheduler_is("disabled"));
	assert_int_equal(pipe(out), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		become_scheduler(out[1]);
	close(out[1]);
	/* It says one line when it runs. */
	assert_true(read(out[0], said, sizeof(said) - 1) > 0);
	assert_non_null(strstr(said, "scheduling"));
	assert_true(scheduler_runs());
	counts_fd = out[0];
	return pid;
}

int scheduler_end(pid_t pid, int signal)
{
	static const struct timespec nap = { .tv_nsec = 20000000 };
	uint64_t limit_ns = ktest_now_ns() + WAIT_SECONDS * 1000000000ull;
	int status;

	assert_int_equal(kill(pid, signal), 0);
	status = ktest_wait_for(pid, WAIT_SECONDS);
	while (!scheduler_is("disabled") && ktest_now_ns() < limit_ns)
		nanosleep(&nap, NULL);
	assert_true(scheduler_is("disabled"));
	return status;
}

static uint64_t find_count(const char *text, const char *what)
{
	const char *at = strstr(text, what);

	assert_non_null(at);
	while (at > text && at[-1] != '\n')
		at--;
	return strtoull(at, NULL, 10);
}

uint64_t scheduler_counted(const char *what)
{
	static char said[2000];
	static size_t nr;
	ssize_t got;

	while ((got = read(counts_fd, said + nr, sizeof(said) - 1 - nr)) > 0)
		nr += (size_t)got;
	return find_count(said, what);
}
