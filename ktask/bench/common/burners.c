/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See burners.h. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burners.h"

static _Noreturn void burn_cpu(const struct burners *burners)
{
	const struct sched_param none = { .sched_priority = 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setpriority(PRIO_PROCESS, 0, burners->nice))
		perror("setpriority");
	if (burners->idle && sched_setscheduler(0, SCHED_IDLE, &none))
		perror("sched_setscheduler");
	for (;;)
		;
}

void burners_start(struct burners *burners)
{
	for (unsigned i = 0; i < burners->nr; i++) {
		burners->pids[i] = fork();
		if (!burners->pids[i])
			burn_cpu(burners);
	}
}

void burners_signal(const struct burners *burners, int signal)
{
	for (unsigned i = 0; i < burners->nr; i++)
		if (burners->pids[i] > 0)
			kill(burners->pids[i], signal);
}

void burners_stop(struct burners *burners)
{
	burners_signal(burners, SIGKILL);
	for (unsigned i = 0; i < burners->nr; i++)
		if (burners->pids[i] > 0)
			waitpid(burners->pids[i], NULL, 0);
}
