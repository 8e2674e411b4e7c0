/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CPUs that are unplugged take their ready threads to other cores' counts, and
 * nothing is left on theirs; when they come back they count again.
 *
 * In guests only (tests/vm/user/also): it switches CPUs off.
 */
#include "support/subscribers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#define NR_THREADS 6
#define ROUNDS 3

static struct umt *subscriber;
static uint32_t stop;

static bool in_guest(void)
{
	return !access("/tests/0-topology", F_OK);
}

static bool switch_cpu(int cpu, int online)
{
	char path[80];
	FILE *file;
	bool done;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online",
		 cpu);
	file = fopen(path, "w");
	done = file && fprintf(file, "%d", online) > 0;
	return file && !fclose(file) && done;
}

/* Half of them compute, half of them wait; all have begun on the last CPU. */
static void *compute_or_wait(void *number)
{
	bool waits = (uintptr_t)number % 2;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sysconf(_SC_NPROCESSORS_CONF) - 1, &set);
	sched_setaffinity(0, sizeof(set), &set);
	assert_int_equal(umt_thread_add(subscriber), 0);
	while (!load(stop))
		if (waits)
			block_us(300);
	assert_int_equal(umt_thread_remove(subscriber), 0);
	return NULL;
}

static bool never_negative(void)
{
	const struct umt_core *cores = umt_cores(subscriber);
	int cpu;

	for (cpu = 0; cpu < umt_nr_cores(subscriber); cpu++)
		if (umt_ready(cores, cpu) < 0)
			return false;
	return true;
}

static void counts_move(unsigned backend)
{
	int last = (int)sysconf(_SC_NPROCESSORS_CONF) - 1;
	pthread_t threads[NR_THREADS];
	uint64_t sleeps;
	uintptr_t i;

	if (!in_guest())
		ktest_skip("switches CPUs off: in guests only");
	subscriber = subscriber_of(backend, 0);
	assert_true(umt_core_fd(subscriber, last) >= 0);
	stop = 0;
	for (i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, compute_or_wait, (void *)i);
	assert_true(holds_soon(umt_ready(umt_cores(subscriber), last) > 0));
	for (i = 0; i < ROUNDS; i++) {
		assert_true(switch_cpu(last, 0));
		assert_true(
			holds_soon(!umt_ready(umt_cores(subscriber), last) ||
				   backend == UMT_EXPLICIT));
		assert_true(never_negative());
		sleeps = sums_of(subscriber).sleeps;
		assert_true(
			holds_soon(sums_of(subscriber).sleeps > sleeps + 20));
		assert_true(holds_soon(ready_of(subscriber) >= NR_THREADS / 2));
		assert_true(switch_cpu(last, 1));
	}
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(holds_soon(!ready_of(subscriber)));
	assert_all_zero(subscriber);
	umt_close(subscriber);
}

ON_EACH_BACKEND(counts_move)

KTEST_MAIN(KTEST_EACH(counts_move))
