/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The paper's form: a leader that polls a descriptor per core and adds up
 * "unblocked - blocked" has the number of ready threads, whatever happens
 * while it reads.
 */
#include "support/subscribers.h"

#include <poll.h>
#include <pthread.h>

#define NR_THREADS 4
#define ROUNDS 300
#define ROUNDS_AT_MOST 100000
#define CPUS_MAX 1024

static int fds[CPUS_MAX], nr_cores;
static long ready[CPUS_MAX];
static uint64_t nr_blocked;
static bool leader_has_enough;

static void enable_backend(unsigned backend)
{
	/* What it would say if there were none. */
	umt_close(subscriber_of(backend, 0));
	setenv("UMT_BACKEND", umt_backend_name((int)backend), 1);
	nr_cores = umt_enable(fds, CPUS_MAX);
	assert_in_range(nr_cores, 1, CPUS_MAX);
	memset(ready, 0, sizeof(ready));
	nr_blocked = 0;
}

static void disable_backend(void)
{
	umt_disable();
	unsetenv("UMT_BACKEND");
}

/* One turn of the paper's leader; returns how many descriptors were ready. */
static int read_all(int timeout_ms)
{
	struct pollfd polls[CPUS_MAX];
	struct umt_counts counts;
	int cpu, nr;

	for (cpu = 0; cpu < nr_cores; cpu++)
		polls[cpu] = (struct pollfd){ fds[cpu], POLLIN, 0 };
	nr = poll(polls, (nfds_t)nr_cores, timeout_ms);
	for (cpu = 0; nr > 0 && cpu < nr_cores; cpu++) {
		if (!polls[cpu].revents)
			continue;
		assert_int_equal(umt_core_read(cpu, &counts), 0);
		ready[cpu] += (long)(counts.unblocked - counts.blocked);
		nr_blocked += counts.blocked;
	}
	return nr;
}

static long all_ready(void)
{
	long sum = 0;
	int cpu;

	for (cpu = 0; cpu < nr_cores; cpu++)
		sum += ready[cpu];
	return sum;
}

/* Nothing more comes and nobody is left; who tells may be late. */
static bool all_is_told(void)
{
	int cpu;

	while (read_all(20) > 0)
		;
	for (cpu = 0; cpu < nr_cores; cpu++)
		if (ready[cpu])
			return false;
	return true;
}

static void *block_often(void *unused)
{
	int i;

	assert_int_equal(umt_thread_ctrl(1), 0);
	/* A wait is over before it blocks where its thread gets no CPU. */
	for (i = 0; i < ROUNDS ||
		    (i < ROUNDS_AT_MOST &&
		     !__atomic_load_n(&leader_has_enough, __ATOMIC_RELAXED));
	     i++)
		block_us(50 + i % 50);
	assert_int_equal(umt_thread_ctrl(0), 0);
	return NULL;
}

static void a_leader_can_follow(unsigned backend)
{
	pthread_t threads[NR_THREADS];
	int i;

	enable_backend(backend);
	leader_has_enough = false;
	for (i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, block_often, NULL);
	while (nr_blocked < NR_THREADS * ROUNDS / 2)
		assert_true(read_all(60000) > 0);
	__atomic_store_n(&leader_has_enough, true, __ATOMIC_RELAXED);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(holds_soon(all_is_told()));
	assert_true(nr_blocked >= NR_THREADS * ROUNDS / 2);
	disable_backend();
}

static void reading_makes_unreadable(unsigned backend)
{
	struct umt_counts counts = { 9, 9 };
	int i;

	enable_backend(backend);
	assert_int_equal(read_all(10), 0);
	assert_int_equal(umt_core_read(0, &counts), 0);
	assert_int_equal(counts.blocked + counts.unblocked, 0);
	assert_int_equal(umt_thread_ctrl(1), 0);
	for (i = 0; i < 10; i++) {
		block_us(500);
		assert_true(
			holds_soon(read_all(1000) >= 0 && all_ready() == 1));
	}
	/* The descriptors are of this thread: removed, none can fire. */
	assert_int_equal(umt_thread_ctrl(0), 0);
	assert_true(holds_soon(all_is_told()));
	assert_true(holds_soon(read_all(20) == 0));
	assert_int_equal(all_ready(), 0);
	disable_backend();
}

static void it_is_enabled_once(unsigned backend)
{
	struct umt_counts counts;

	assert_int_equal(umt_thread_ctrl(1), -ENODEV);
	assert_int_equal(umt_core_read(0, &counts), -ENODEV);
	assert_int_equal(umt_enable(NULL, 1), -EINVAL);
	assert_int_equal(umt_enable(fds, -1), -EINVAL);
	enable_backend(backend);
	assert_int_equal(umt_enable(fds, CPUS_MAX), -EBUSY);
	assert_int_equal(umt_thread_ctrl(2), -EINVAL);
	assert_int_equal(umt_core_read(-1, &counts), -EINVAL);
	assert_int_equal(umt_core_read(nr_cores, &counts), -EINVAL);
	umt_disable();
	assert_int_equal(umt_enable(NULL, 0), nr_cores);
	disable_backend();
	disable_backend();
}

static int asked;

static void *reads_counts(void *subscriber)
{
	struct umt_counts counts;
	long wrong = 0;

	do
		wrong += umt_core_counts(subscriber, 0, &counts) != 0;
	while (!__atomic_load_n(&asked, __ATOMIC_RELAXED));
	return (void *)wrong;
}

/* All calls but two may be made while another thread makes any. */
static void descriptors_come_beside_a_reader(unsigned backend)
{
	/* Or the kernel's program would be loaded in each turn. */
	struct umt *stays = subscriber_of(backend, 0);
	int turn;

	for (turn = 0; turn < 20; turn++) {
		struct umt *subscriber = subscriber_of(backend, 0);
		pthread_t thread;
		void *wrong;

		__atomic_store_n(&asked, 0, __ATOMIC_RELAXED);
		assert_int_equal(
			pthread_create(&thread, NULL, reads_counts, subscriber),
			0);
		assert_true(umt_core_fd(subscriber, 0) >= 0);
		__atomic_store_n(&asked, 1, __ATOMIC_RELAXED);
		assert_int_equal(pthread_join(thread, &wrong), 0);
		assert_null(wrong);
		umt_close(subscriber);
	}
	umt_close(stays);
}

ON_EACH_BACKEND(a_leader_can_follow)
ON_EACH_BACKEND(descriptors_come_beside_a_reader)
ON_EACH_BACKEND(reading_makes_unreadable)
ON_EACH_BACKEND(it_is_enabled_once)

KTEST_MAIN(KTEST_EACH(a_leader_can_follow),
	   KTEST_EACH(reading_makes_unreadable), KTEST_EACH(it_is_enabled_once),
	   KTEST_EACH(descriptors_come_beside_a_reader))
