/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bench-scx: schedulers by turns in one guest, each with the same loads.
 *
 * Owns the turns, and loading and taking away a scheduler.  Those that are there are
 * compared: /bin/scx_simple may be missing.  One that the kernel takes away in the middle
 * is an error.  BENCH_ROUNDS, a word of the kernel's command line, says how many rounds.
 *
 * Does not compute medians: ktask/bench/vm/schedulers does.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/clock.h"
#include "loads.h"

#define STATE "/sys/kernel/sched_ext/state"
#define START_NS 60000000000u
#define POLL_NS 10000000
#define SAID "/tmp/scheduler-said"

struct scheduler {
	const char *name;
	const char *path; /* NULL: the kernel's own */
	const char *option;
};

static const struct scheduler schedulers[] = {
	{ "EEVDF", NULL, NULL },
	{ "scx_simple", "/bin/scx_simple", NULL },
	{ "scx_ktask", "/bin/scx_ktask", "-v" },
};

#define NR_SCHEDULERS (sizeof(schedulers) / sizeof(*schedulers))

static const struct {
	const char *name;
	int (*run)(const struct turn *turn);
} loads[] = {
	{ "messages", messages_run },	  { "pipe", pipe_run },
	{ "requests", requests_run },	  { "share", share_run },
	{ "neighbours", neighbours_run },
};

#define NR_LOADS (sizeof(loads) / sizeof(*loads))

void report_value(const struct turn *turn, const char *load,
		  const char *measure, double value)
{
	printf("value %s|%s|%s %.9g\n", turn->scheduler, load, measure, value);
}

static bool state_is(const char *wanted)
{
	FILE *file = fopen(STATE, "r");
	char line[40] = "";
	bool is;

	if (!file)
		return false;
	is = fgets(line, sizeof(line), file) &&
	     !strncmp(line, wanted, strlen(wanted));
	fclose(file);
	return is;
}

static bool await_state(const char *wanted)
{
	uint64_t until_ns = clock_ns() + START_NS;

	while (!state_is(wanted)) {
		if (clock_ns() > until_ns)
			return false;
		clock_pause_ns(POLL_NS);
	}
	return true;
}

static void become_scheduler(const struct scheduler *scheduler)
{
	int out = open(SAID, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	dup2(out, STDOUT_FILENO);
	execl(scheduler->path, scheduler->name, scheduler->option,
	      (char *)NULL);
	_exit(126);
}

/* What scx_ktask counted, as comments. */
static void repeat_counts(const struct scheduler *scheduler)
{
	FILE *file = scheduler->option ? fopen(SAID, "r") : NULL;
	char line[200];

	while (file && fgets(line, sizeof(line), file))
		printf("# %s: %s", scheduler->name, line);
	if (file)
		fclose(file);
}

static int run_loads(const struct scheduler *scheduler)
{
	struct turn turn = {
		.scheduler = scheduler->name,
		.cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
	};
	int error = 0;

	for (size_t i = 0; i < NR_LOADS && !error; i++) {
		uint64_t start_ns = clock_ns();

		error = loads[i].run(&turn);
		printf("# %s: %s took %.1f s\n", scheduler->name, loads[i].name,
		       (double)(clock_ns() - start_ns) / 1e9);
		if (error)
			printf("# %s: %s: %s\n", scheduler->name, loads[i].name,
			       strerror(error));
	}
	return error;
}

static int run_turn(const struct scheduler *scheduler)
{
	bool stayed;
	pid_t pid;
	int error;

	if (!scheduler->path)
		return run_loads(scheduler);
	pid = fork();
	if (!pid)
		become_scheduler(scheduler);
	if (pid < 0)
		return errno;
	error = await_state("enabled") ? run_loads(scheduler) : ETIMEDOUT;
	stayed = state_is("enabled");
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	if (!await_state("disabled") || !stayed) {
		printf("# %s did not stay until its end\n", scheduler->name);
		return EIO;
	}
	repeat_counts(scheduler);
	return error;
}

int main(void)
{
	const char *given = getenv("BENCH_ROUNDS");
	unsigned rounds = given ? (unsigned)atoi(given) : 3;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned round = 0; round < rounds; round++)
		for (size_t i = 0; i < NR_SCHEDULERS; i++) {
			const struct scheduler *scheduler =
				&schedulers[(round + i) % NR_SCHEDULERS];

			if (scheduler->path && access(scheduler->path, X_OK))
				continue;
			if (run_turn(scheduler))
				return 1;
		}
	return 0;
}
