/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A CPU that came after the subscriber had opened has no entry in its table:
 * what happens there counts on the first core, and nothing is written
 * elsewhere.
 */
#include "support/subscribers.h"

#include <pthread.h>
#include <sched.h>

#include "lib/subscriber.h"

static uint32_t stop;

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static int last_cpu(void)
{
	int cpu = CPU_SETSIZE;
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (cpu-- > 0)
		if (CPU_ISSET(cpu, &set))
			return cpu;
	return 0;
}

/* The other's CPU is its own: so both lose it. */
static void *yield_often(void *unused)
{
	while (!load(stop))
		sched_yield();
	return NULL;
}

static bool yielded_until(const __u64 *here, const __u64 *there)
{
	int i;

	for (i = 0; i < 1000; i++)
		sched_yield();
	return load(*here) || load(*there);
}

static void a_later_cpu_counts_on_the_first(void **state)
{
	struct umt *subscriber = subscriber_of(UMT_PERF, 0);
	const struct umt_core *cores = umt_cores(subscriber);
	int cpu = last_cpu(), nr = subscriber->nr_cores;
	pthread_t other;

	if (!cpu || cpu >= nr) {
		umt_close(subscriber);
		ktest_skip("one CPU");
	}
	stay_on(cpu);
	subscriber->nr_cores = 1;
	assert_int_equal(pthread_create(&other, NULL, yield_often, NULL), 0);
	assert_int_equal(umt_thread_add(subscriber), 0);
	assert_true(holds_soon(
		yielded_until(&cores[0].preempts, &cores[cpu].preempts)));
	assert_int_equal(umt_thread_remove(subscriber), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(other, NULL);
	assert_true(load(cores[0].preempts) > 0);
	assert_int_equal(load(cores[cpu].preempts), 0);
	assert_int_equal(load(cores[cpu].ready), 0);
	assert_all_zero(subscriber);
	subscriber->nr_cores = nr;
	umt_close(subscriber);
}

KTEST_MAIN(KTEST(a_later_cpu_counts_on_the_first))
