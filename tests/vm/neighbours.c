/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests of jobs beside others who keep CPUs busy: a thread on each CPU that never
 * sleeps, so that none of these idles for a moment, however slow the machine is.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

#define LONG_MS "600000"
/* Each of which a helper that gets a turn from a busy thread takes part in; as long
 * as need be for threads of the process to be made (ktask/kernel/client/device_populate.c). */
#define REQUESTS 5
#define LEN (16 * MIB)
/* How often a CPU goes and comes. */
#define GOINGS 16

struct busy {
	int nr;
	pid_t pids[CPU_SETSIZE];
	volatile char *begun; /* shared, by CPU */
};

/* The instruction for loops that wait ends an emulated CPU's turn where one thread of
 * the host's runs all of them: the tests are not about who waits for a turn. */
static void spin_on_cpu(struct busy *busy, int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		_exit(1);
	busy->begun[cpu] = 1;
	for (;;)
		__builtin_ia32_pause();
}

static bool await_begun(const struct busy *busy, int cpu)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (busy->begun[cpu])
			return true;
		sleep_ms(1);
	}
	return false;
}

/* On the first @nr_cpus of the CPUs that are there. */
static bool start_busy(struct busy *busy, int nr_cpus)
{
	bool well = true;

	busy->nr = 0;
	busy->begun = mmap(NULL, CPU_SETSIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (busy->begun == MAP_FAILED)
		return false;
	for (int cpu = 0; cpu < nr_cpus && well; cpu++) {
		pid_t pid = fork();

		if (pid == 0)
			spin_on_cpu(busy, cpu);
		busy->pids[busy->nr++] = pid;
		well = pid > 0 && await_begun(busy, cpu);
	}
	return well;
}

static void end_busy(struct busy *busy)
{
	for (int i = 0; i < busy->nr; i++)
		if (busy->pids[i] > 0)
			kill_process(busy->pids[i]);
	munmap((void *)busy->begun, CPU_SETSIZE);
}

/* Return: the most threads that any of some requests had; 0: one failed. */
static unsigned most_threads(void)
{
	unsigned most = 0;
	char *addr = map_memory(LEN);
	int fd = open_device();

	for (int i = 0; i < REQUESTS; i++) {
		unsigned threads = request_threads(fd, KTASK_IOC_POPULATE, addr,
						   LEN, KTASK_MEM_WRITE);

		if (!threads) {
			most = 0;
			break;
		}
		most = threads > most ? threads : most;
		madvise(addr, LEN, MADV_DONTNEED);
	}
	munmap(addr, LEN);
	close(fd);
	return most;
}

/*
 * Kernel threads or the process's own: one that is woken beside a busy thread takes a
 * turn from that.  What nobody works on else is begun nonetheless.
 */
static void no_helper_is_woken_beside_busy_threads(void)
{
	int nr_cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	unsigned long long none_idle = stat_of("no_idle_cpu");
	int alone = 0, started = 0, shared = 0, again = 0;
	unsigned threads = 0;
	struct busy busy;
	bool begun;

	if (nr_cpus < 2) {
		say_verdict(true, __func__, "one CPU");
		return;
	}
	CHECK(!write_file(ONLY_IDLE_MS, LONG_MS));
	begun = start_busy(&busy, nr_cpus);
	if (begun) {
		alone = run_in_kernel("+unhelped-jobs");
		threads = most_threads();
		none_idle = stat_of("no_idle_cpu") - none_idle;
		started = run_in_kernel("started-jobs-go-on-by-themselves");
		/* Nice 19 has its part of a CPU, in time. */
		write_file(ONLY_IDLE_MS, "0");
		shared = run_in_kernel("helpers-do-a-part");
		write_file(ONLY_IDLE_MS, LONG_MS);
	}
	end_busy(&busy);
	again = run_in_kernel("helpers-do-a-part");
	write_file(ONLY_IDLE_MS, "500");
	CHECK(begun);
	CHECK(!alone);
	CHECK(threads == 1);
	CHECK(none_idle > 0);
	CHECK(!started);
	CHECK(!shared);
	CHECK(!again);
	say_verdict(true, __func__, NULL);
}

/* Whatever node a range belongs to. */
static void helpers_are_woken_where_a_cpu_idles(void)
{
	int nr_cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	struct busy busy;
	int error = 0;
	bool begun;

	if (nr_cpus < 4) {
		say_verdict(true, __func__, "fewer than four CPUs");
		return;
	}
	CHECK(!write_file(ONLY_IDLE_MS, LONG_MS));
	begun = start_busy(&busy, nr_cpus - 2);
	if (begun)
		error = run_in_kernel("+helped-where-a-cpu-idles");
	end_busy(&busy);
	write_file(ONLY_IDLE_MS, "500");
	CHECK(begun);
	if (error)
		say_verdict(false, __func__, "%s", strerror(error));
	else
		say_verdict(true, __func__, NULL);
}

/*
 * Helpers that wait for a turn beside busy threads are moved by those who want them next,
 * also while a CPU goes.  If one is then queued there the kernel warns of a CPU that is
 * not vacated, which fails the guest.
 */
static void no_helper_is_left_on_a_cpu_that_goes(void)
{
	unsigned nr_cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN), i;
	struct busy busy;
	int error = 0;
	bool begun;

	if (nr_cpus < 3) {
		say_verdict(true, __func__, "fewer than three CPUs");
		return;
	}
	CHECK(!write_file(ONLY_IDLE_MS, "0"));
	begun = start_busy(&busy, (int)nr_cpus - 1);
	if (begun) {
		pid_t pid = start_in_kernel("+helpers-from-cpu-to-cpu");

		for (i = 0; i < GOINGS && !error; i++) {
			error = set_cpu(nr_cpus - 1, false);
			set_cpu(nr_cpus - 1, true);
		}
		kill_process(pid);
	}
	end_busy(&busy);
	write_file(ONLY_IDLE_MS, "500");
	CHECK(begun);
	CHECK(!error);
	say_verdict(true, __func__, NULL);
}

void test_neighbours(void)
{
	no_helper_is_woken_beside_busy_threads();
	helpers_are_woken_where_a_cpu_idles();
	no_helper_is_left_on_a_cpu_that_goes();
}
