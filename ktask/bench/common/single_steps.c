/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See single_steps.h. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/single_steps.h"

uint64_t single_steps(void (*run)(void *arg), void *arg)
{
	uint64_t count = 0;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		run(arg);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (!WIFSTOPPED(status))
		return 0;
	do {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL))
			break;
		waitpid(pid, &status, 0);
		count++;
	} while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return count;
}
