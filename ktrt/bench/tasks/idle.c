/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What an idle runtime costs others: a byte goes to and fro by pipes between two
 * processes, on one CPU, that were there before the runtime was.
 */
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/tasks/cases.h"
#include "bench/tasks/parts.h"

#define SERIES 101
#define TRIPS 2000
/* UMT pauses when all workers have slept for half a second. */
#define REST_SECONDS 2

/* What each process writes to, and the other reads. */
struct pipes {
	int there[2], back[2];
};

static int resume[2], result[2];

static void send_byte(int fd)
{
	if (write(fd, "", 1) != 1)
		_exit(1);
}

/* At the end of the other side this one ends as well. */
static void await_byte(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(1);
}

static void answer_all(const struct pipes *pipes)
{
	close(pipes->there[1]);
	for (;;) {
		await_byte(pipes->there[0]);
		send_byte(pipes->back[1]);
	}
}

static double time_trips(const struct pipes *pipes)
{
	uint64_t start = now_ns();

	for (int i = 0; i < TRIPS; i++) {
		send_byte(pipes->there[1]);
		await_byte(pipes->back[0]);
	}
	return (double)(now_ns() - start) / TRIPS;
}

static void measure_trips(const struct pipes *pipes)
{
	double ns[SERIES], median_ns;

	close(resume[1]);
	await_byte(resume[0]);
	for (int i = 0; i < SERIES; i++)
		ns[i] = time_trips(pipes);
	median_ns = median_of(ns, SERIES);
	if (write(result[1], &median_ns, sizeof(median_ns)) !=
	    sizeof(median_ns))
		_exit(1);
}

/* Both on one CPU, so that a trip is two switches wherever they began. */
static void use_one_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static pid_t fork_or_abort(void)
{
	pid_t child = fork();

	if (child < 0)
		abort();
	return child;
}

void idle_begin(void)
{
	struct pipes pipes;

	if (pipe(resume) || pipe(result) || pipe(pipes.there) ||
	    pipe(pipes.back))
		abort();
	if (!fork_or_abort()) {
		use_one_cpu();
		if (!fork_or_abort())
			answer_all(&pipes);
		measure_trips(&pipes);
		_exit(0);
	}
	close(pipes.there[1]);
	close(result[1]);
}

double idle_measure(void)
{
	struct timespec rest = { REST_SECONDS, 0 };
	double ns;

	cases.wake();
	nanosleep(&rest, NULL);
	if (write(resume[1], "", 1) != 1 ||
	    read(result[0], &ns, sizeof(ns)) != sizeof(ns))
		return -1;
	return ns;
}
