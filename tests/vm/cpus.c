/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CPUs that come and go while jobs run in the kernel.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

int set_cpu(unsigned cpu, bool online)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online",
		 cpu);
	return write_file(path, online ? "1" : "0");
}

/* Each CPU but the first, while a job runs.  Return: the job's status. */
static int job_among_moving_cpus(const char *job, unsigned nr_cpus,
				 unsigned *moves)
{
	pid_t pid = start_in_kernel(job);
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		unsigned cpu = 1 + (*moves)++ % (nr_cpus - 1);

		set_cpu(cpu, false);
		sleep_ms(10);
		set_cpu(cpu, true);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static void survive_moving_cpus(const char *name, const char *job)
{
	unsigned nr_cpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF);
	unsigned moves = 0;
	int status = 0, i;

	if (nr_cpus < 2) {
		say_verdict(true, name, "one CPU");
		return;
	}
	/* One move can outlast a job where CPUs are slow. */
	for (i = 0; (i < 3 || (moves <= 3 && i < 30)) && !status; i++)
		status = job_among_moving_cpus(job, nr_cpus, &moves);
	if (!status && moves > 3)
		say_verdict(true, name, NULL);
	else
		say_verdict(false, name, "status %d, %u moves", status, moves);
}

static void jobs_survive_cpu_hotplug(void)
{
	survive_moving_cpus(__func__, "+short-job");
}

/* Of a helper whose CPUs are all gone the kernel makes one for any CPU. */
static void groups_of_cpus_survive_hotplug(void)
{
	survive_moving_cpus(__func__, "+masked-jobs");
	one_in_kernel("helpers-stay-in-the-mask");
}

void test_cpus(void)
{
	jobs_survive_cpu_hotplug();
	groups_of_cpus_survive_hotplug();
}
