/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "busy_threads.h"

#include <errno.h>
#include <time.h>

#include "ktest.h"

#define WAIT_SECONDS 150
#define LOOPS 2000

static void take_nap(void)
{
	static const struct timespec ts = { .tv_nsec = 5000000 };

	nanosleep(&ts, NULL);
}

static cpu_set_t as_set(uint64_t cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int cpu = 0; cpu < 64; cpu++)
		if (cpus & (1ull << cpu))
			CPU_SET(cpu, &set);
	return set;
}

/* Return: 0 or an errno */
static int lower_thread(void)
{
	static const struct sched_param none;

	return sched_setscheduler(0, SCHED_IDLE, &none) ? errno : 0;
}

static void count_once(struct busy_thread *busy)
{
	for (volatile int i = 0; i < LOOPS; i++)
		;
	__atomic_add_fetch(&busy->nr, 1, __ATOMIC_RELAXED);
	__atomic_or_fetch(&busy->cpus, 1ull << sched_getcpu(),
			  __ATOMIC_RELAXED);
}

static void *count_on(void *arg)
{
	struct busy_thread *busy = arg;

	if (busy->is_low)
		busy->low_error = lower_thread();
	while (!__atomic_load_n(&busy->ends, __ATOMIC_RELAXED))
		count_once(busy);
	return NULL;
}

void busy_start(struct busy_thread *busy, uint64_t cpus)
{
	cpu_set_t set = as_set(cpus);
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	assert_int_equal(pthread_create(&busy->thread, &attr, count_on, busy),
			 0);
	pthread_attr_destroy(&attr);
}

bool busy_bind(struct busy_thread *busy, uint64_t cpus)
{
	cpu_set_t set = as_set(cpus);

	return !pthread_setaffinity_np(busy->thread, sizeof(set), &set);
}

void busy_stop(struct busy_thread *busy)
{
	if (busy->ends)
		return;
	__atomic_store_n(&busy->ends, true, __ATOMIC_RELAXED);
	pthread_join(busy->thread, NULL);
}

uint64_t busy_count(const struct busy_thread *busy)
{
	return __atomic_load_n(&busy->nr, __ATOMIC_RELAXED);
}

static bool was_on(struct busy_thread *busy, uint64_t cpus)
{
	return (__atomic_load_n(&busy->cpus, __ATOMIC_RELAXED) & cpus) == cpus;
}

void busy_await(struct busy_thread *busy, uint64_t more, uint64_t cpus)
{
	uint64_t limit_ns = ktest_now_ns() + WAIT_SECONDS * 1000000000ull;
	uint64_t wanted = busy_count(busy) + more;

	while (busy_count(busy) < wanted || !was_on(busy, cpus)) {
		assert_true(ktest_now_ns() < limit_ns);
		take_nap();
	}
}
