/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the tests of the runtime share: starting it in several ways, waiting
 * for a condition, blocking.
 */
#ifndef RUNTIME_TEST_RUNS_H
#define RUNTIME_TEST_RUNS_H

#include "ktest.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <ktask/runtime.h>

#define get(object) __atomic_load_n(&(object), __ATOMIC_SEQ_CST)
#define set(object, value) __atomic_store_n(&(object), value, __ATOMIC_SEQ_CST)
#define more(object) __atomic_add_fetch(&(object), 1, __ATOMIC_SEQ_CST)

/* The ways in which a runtime may be made; a test runs in each. */
static const struct way {
	const char *name;
	unsigned workers, flags;
} all_ways[] = {
	{ "as usual", 0, 0 },
	{ "one worker", 1, 0 },
	{ "without UMT", 0, KTRT_NO_UMT },
	{ "one worker without UMT", 1, KTRT_NO_UMT },
	{ "leader-follower", 0, KTRT_FOLLOW },
	{ "after UMT", 0, KTRT_UMT_FIRST },
	{ "leader-follower after UMT", 0, KTRT_FOLLOW | KTRT_UMT_FIRST },
	{ "unbound", 0, KTRT_UNBOUND },
};

#define NR_WAYS KTEST_ARRAY_SIZE(all_ways)

static inline void start_way(const struct way *way)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	printf("# %s\n", way->name);
	options.workers = way->workers;
	options.flags = way->flags;
	assert_int_equal(ktrt_start(&options), 0);
}

/* Does @test in a runtime made in each way. */
static inline void in_each_way(void (*test)(void))
{
	for (size_t i = 0; i < NR_WAYS; i++) {
		start_way(&all_ways[i]);
		test();
		assert_int_equal(ktrt_stop(), 0);
	}
}

/* What serves UMT, or "loading", or "none". */
static inline const char *backend_in_use(void)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_info_get(&info), 0);
	return info.backend;
}

static inline void nap_us(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

/* Waits until @condition holds, for a minute at most; its last value. */
#define holds_soon(condition)                                            \
	({                                                               \
		uint64_t until = ktest_now_ns() + 60000000000;           \
		bool holds;                                              \
                                                                         \
		while (!(holds = (condition)) && ktest_now_ns() < until) \
			nap_us(200);                                     \
		holds;                                                   \
	})

/* Waits until @counter is @wanted, as long as it changes once a minute; is it? */
#define comes_to(counter, wanted)                                             \
	({                                                                    \
		unsigned long seen;                                           \
                                                                              \
		do                                                            \
			seen = get(counter);                                  \
		while (seen != (wanted) && holds_soon(get(counter) != seen)); \
		seen == (wanted);                                             \
	})

/* The least time between two readings of the clock, which the runtime reads too. */
static inline uint64_t clock_step_ns(void)
{
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t begin_ns = ktest_now_ns();
		uint64_t took_ns = ktest_now_ns() - begin_ns;

		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	return least_ns;
}

#endif /* RUNTIME_TEST_RUNS_H */
