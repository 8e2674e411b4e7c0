/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Neighbours by fork: their own address spaces, so that they share CPUs and
 * memory with the job but no lock of the kernel.
 *
 * They are of the same session as the job.  Beside another session's the
 * priorities of helpers would not count where autogroups are on.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/clock.h"
#include "load.h"

#define STEP_LOOPS 20000
#define STEP_BYTES ((size_t)64 << 10)
/* Eight times the largest last-level cache that is common. */
#define STREAM_BYTES ((size_t)256 << 20)
#define START_NS 90000000000u

struct neighbour {
	_Alignas(64) uint64_t steps;
	pid_t pid;
};

struct load {
	unsigned nr;
	struct neighbour *all; /* shared with them */
};

static void count_step(struct neighbour *self)
{
	__atomic_store_n(&self->steps, self->steps + 1, __ATOMIC_RELAXED);
}

static void compute_steps(struct neighbour *self)
{
	uint64_t x = 88172645463325252u;

	for (;;) {
		for (int i = 0; i < STEP_LOOPS; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		__asm__ volatile("" : : "r"(x));
		count_step(self);
	}
}

static void stream_memory(struct neighbour *self)
{
	char *array = mmap(NULL, STREAM_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (array == MAP_FAILED)
		_exit(1);
	(void)madvise(array, STREAM_BYTES, MADV_HUGEPAGE);
	memset(array, 1, STREAM_BYTES);
	for (char byte = 0;; byte++)
		for (size_t at = 0; at < STREAM_BYTES; at += STEP_BYTES) {
			uint64_t *word = (uint64_t *)(array + at);

			for (size_t i = 0; i < STEP_BYTES / 8; i++)
				word[i] += (uint64_t)byte;
			count_step(self);
		}
}

static void run_neighbour(struct neighbour *self, enum load_kind kind, int cpu,
			  pid_t parent)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent ||
	    sched_setaffinity(0, sizeof(one), &one))
		_exit(1);
	if (kind == LOAD_CPU)
		compute_steps(self);
	stream_memory(self);
}

/* The CPU with @nr more of the process's behind it. */
static int cpu_from_last(unsigned nr)
{
	cpu_set_t own;
	int cpu = CPU_SETSIZE;

	if (sched_getaffinity(0, sizeof(own), &own))
		return 0;
	while (--cpu >= 0)
		if (CPU_ISSET(cpu, &own) && !nr--)
			break;
	return cpu;
}

static int start_one(struct neighbour *one, enum load_kind kind, unsigned nr)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid)
		run_neighbour(one, kind, cpu_from_last(nr), parent);
	/* The child shares this memory, and knows itself as 0. */
	one->pid = pid;
	return pid < 0 ? errno : 0;
}

/* Until all have done a step, or time is up. */
static int wait_for_steps(const struct load *load)
{
	uint64_t until = clock_ns() + START_NS;
	unsigned ready = 0;

	while (ready < load->nr && clock_ns() < until) {
		clock_pause_ns(1000000);
		for (ready = 0; ready < load->nr; ready++)
			if (!__atomic_load_n(&load->all[ready].steps,
					     __ATOMIC_RELAXED))
				break;
	}
	return ready < load->nr ? ETIMEDOUT : 0;
}

static size_t bytes_of(unsigned nr)
{
	return (nr + 1) * sizeof(struct neighbour);
}

struct load *load_start(enum load_kind kind, unsigned nr)
{
	struct load *load = calloc(1, sizeof(*load));
	int error = 0;

	if (!load)
		return NULL;
	load->all = mmap(NULL, bytes_of(nr), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (load->all == MAP_FAILED) {
		free(load);
		return NULL;
	}
	for (; load->nr < nr && !error; load->nr++)
		error = start_one(&load->all[load->nr], kind, load->nr);
	if (!error)
		error = wait_for_steps(load);
	if (!error)
		return load;
	load_stop(load);
	errno = error;
	return NULL;
}

uint64_t load_done(const struct load *load)
{
	uint64_t steps = 0;

	for (unsigned i = 0; i < load->nr; i++)
		steps += __atomic_load_n(&load->all[i].steps, __ATOMIC_RELAXED);
	return steps;
}

static void signal_all(struct load *load, int signal)
{
	for (unsigned i = 0; i < load->nr; i++)
		kill(load->all[i].pid, signal);
}

void load_pause(struct load *load)
{
	signal_all(load, SIGSTOP);
}

void load_resume(struct load *load)
{
	signal_all(load, SIGCONT);
}

void load_stop(struct load *load)
{
	if (!load)
		return;
	for (unsigned i = 0; i < load->nr; i++) {
		if (load->all[i].pid <= 0)
			continue;
		kill(load->all[i].pid, SIGKILL);
		waitpid(load->all[i].pid, NULL, 0);
	}
	munmap(load->all, bytes_of(load->nr));
	free(load);
}
