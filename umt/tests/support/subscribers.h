/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the tests of libumt share: a subscriber that is served by a certain
 * backend, sums over its cores, waiting for a condition.
 */
#ifndef UMT_TEST_SUBSCRIBERS_H
#define UMT_TEST_SUBSCRIBERS_H

#include "ktest.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <umt.h>

/* Opens a subscriber by @backend, or skips the test and says why. */
static inline struct umt *subscriber_of(unsigned backend, unsigned flags)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = backend,
				       .flags = flags };
	struct umt_backends info = { .size = sizeof(info) };
	struct umt *subscriber = NULL;
	int error = umt_open(&subscriber, &options);

	if (error) {
		umt_info(&info);
		ktest_skip("no %s here: %s", umt_backend_name((int)backend),
			   info.why[backend]);
	}
	assert_int_equal(umt_backend(subscriber), backend);
	return subscriber;
}

/* Skips the test where this process may not load the program; loading it once tells,
 * which takes a second in a guest. */
static inline void need_own_program(void)
{
	static bool loaded;

	setenv("UMT_SOCKET", "", 1);
	if (!loaded)
		umt_close(subscriber_of(UMT_BPF, 0));
	loaded = true;
}

/* A test that takes the backend, as one test for each backend. */
#define ON_EACH_BACKEND(func)                     \
	static void func##_bpf(void **state)      \
	{                                         \
		func(UMT_BPF);                    \
	}                                         \
	static void func##_perf(void **state)     \
	{                                         \
		func(UMT_PERF);                   \
	}                                         \
	static void func##_explicit(void **state) \
	{                                         \
		func(UMT_EXPLICIT);               \
	}

#define KTEST_EACH(func) \
	KTEST(func##_bpf), KTEST(func##_perf), KTEST(func##_explicit)

struct sums {
	long ready;
	uint64_t sleeps, wakes, moved_in, moved_out, preempts, repairs, lost;
};

/* Somebody else writes. */
#define load(field) __atomic_load_n(&(field), __ATOMIC_SEQ_CST)

static inline struct sums sums_of(const struct umt *subscriber)
{
	const struct umt_core *cores = umt_cores(subscriber);
	struct sums sums = { 0 };
	int cpu;

	for (cpu = 0; cpu < umt_nr_cores(subscriber); cpu++) {
		const struct umt_core *core = &cores[cpu];

		sums.ready += load(core->ready);
		sums.sleeps += load(core->sleeps);
		sums.wakes += load(core->wakes);
		sums.moved_in += load(core->moved_in);
		sums.moved_out += load(core->moved_out);
		sums.preempts += load(core->preempts);
		sums.repairs += load(core->repairs);
		sums.lost += load(core->lost);
	}
	return sums;
}

static inline long ready_of(const struct umt *subscriber)
{
	return sums_of(subscriber).ready;
}

static inline void nap_us(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

/* How often the kernel has seen this thread stop to wait. */
static inline long nr_waits(void)
{
	struct rusage used = { .ru_nvcsw = 0 };

	getrusage(RUSAGE_THREAD, &used);
	return used.ru_nvcsw;
}

/*
 * Naps until the thread has waited @nr times, but @most at most.  On a machine
 * with much to do a nap may be over before the thread comes to wait.
 *
 * Return: naps.
 */
static inline int nap_often(long us, long nr, int most)
{
	long before = nr_waits();
	int naps = 0;

	while (naps < most && nr_waits() - before < nr) {
		nap_us(us);
		naps++;
	}
	return naps;
}

/* Blocks, as every backend can see it. */
static inline void block_us(long us)
{
	umt_block_begin();
	nap_often(us, 1, 100);
	umt_block_end();
}

static inline ssize_t block_reading(int fd, char *byte)
{
	ssize_t nr;

	umt_block_begin();
	nr = read(fd, byte, 1);
	umt_block_end();
	return nr;
}

/* Waits until @condition holds, for a minute at most; its last value. */
#define holds_soon(condition)                                            \
	({                                                               \
		uint64_t until = ktest_now_ns() + 60000000000;           \
		bool holds;                                              \
                                                                         \
		while (!(holds = (condition)) && ktest_now_ns() < until) \
			nap_us(1000);                                    \
		holds;                                                   \
	})

static inline bool all_zero(const struct umt *subscriber)
{
	const struct umt_core *cores = umt_cores(subscriber);
	bool zero = true;
	int cpu;

	for (cpu = 0; cpu < umt_nr_cores(subscriber); cpu++)
		zero = zero && !umt_ready(cores, cpu) &&
		       load(cores[cpu].wakes) + load(cores[cpu].moved_in) ==
			       load(cores[cpu].sleeps) +
				       load(cores[cpu].moved_out);
	return zero;
}

/* Nobody is left, on any core, and the books are balanced; once who keeps them
 * has written what was under way, should that be a thread. */
static inline void assert_all_zero(const struct umt *subscriber)
{
	assert_true(holds_soon(all_zero(subscriber)));
}

#endif /* UMT_TEST_SUBSCRIBERS_H */
