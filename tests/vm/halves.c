/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The ceiling of a request with two threads: two of them that do a half each, on
 * a CPU each, know nothing of each other and share nothing but what the kernel
 * makes them share.  Two threads share an address space; two processes do not,
 * so what those are faster is that space's price.
 *
 * Both stand ready before the time begins.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

/* Lies in memory that two processes share. */
struct other {
	int fd;
	unsigned long what;
	char *addr;
	size_t len;
	_Atomic bool ready, start, done, leave;
	_Atomic bool failed;
};

static void use_cpus(size_t first, size_t last)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (size_t cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void wait_for(_Atomic bool *flag)
{
	while (!*flag)
		sched_yield();
}

static void undo_half(int fd, unsigned long what, char *addr, size_t len)
{
	if (what == KTASK_IOC_PIN)
		do_request(fd, KTASK_IOC_UNPIN, addr, len, 0, NULL);
}

static void *do_other(void *arg)
{
	struct other *other = arg;

	use_cpus(1, 1);
	other->ready = true;
	while (!other->start)
		;
	if (request_alone(other->fd, other->what, other->addr, other->len))
		other->failed = true;
	other->done = true;
	wait_for(&other->leave);
	undo_half(other->fd, other->what, other->addr, other->len);
	return NULL;
}

/* Between them nothing is waited for but the other. */
static double time_both(struct other *other, char *addr)
{
	double start;

	wait_for(&other->ready);
	start = seconds_now();
	other->start = true;
	if (request_alone(other->fd, other->what, addr, other->len))
		other->failed = true;
	while (!other->done)
		;
	return seconds_now() - start;
}

static double run_both(struct other *other, char *addr, bool processes)
{
	pthread_t thread;
	pid_t pid = 0;
	double seconds;

	if (processes)
		pid = fork();
	else if (pthread_create(&thread, NULL, do_other, other))
		return 0;
	if (pid < 0)
		return 0;
	if (processes && !pid) {
		do_other(other);
		_exit(0);
	}
	use_cpus(0, 0);
	seconds = time_both(other, addr);
	other->leave = true;
	if (processes)
		waitpid(pid, NULL, 0);
	else
		pthread_join(thread, NULL);
	undo_half(other->fd, other->what, addr, other->len);
	use_cpus(0, (size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	return other->failed ? 0 : seconds;
}

double time_halves(int fd, unsigned long what, char *addr, size_t len,
		   bool processes)
{
	struct other *other = mmap(NULL, sizeof(*other), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double seconds;

	if (other == MAP_FAILED)
		return 0;
	other->fd = fd;
	other->what = what;
	other->len = len / 2;
	other->addr = addr + len / 2;
	seconds = run_both(other, addr, processes);
	munmap(other, sizeof(*other));
	return seconds;
}
