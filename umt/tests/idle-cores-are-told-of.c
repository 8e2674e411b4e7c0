/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The leader hears of a core whose last ready thread blocked, once until it
 * has read it, only while it wants to, and never of a core that is not idle.
 */
#include "support/subscribers.h"

#include <poll.h>

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd poll_it = { .fd = fd, .events = POLLIN };

	return poll(&poll_it, 1, timeout_ms) == 1;
}

/* How often a core may have lost its last thread. */
static uint64_t nr_left(const struct umt *subscriber)
{
	struct sums sums = sums_of(subscriber);

	return sums.sleeps + sums.moved_out;
}

/* How much is told; only that a core is idle. */
static uint64_t read_all(struct umt *subscriber)
{
	struct umt_event event;
	uint64_t nr;

	for (nr = 0; umt_next(subscriber, &event) == 1; nr++)
		assert_int_equal(event.kind, UMT_IDLE);
	return nr;
}

/* A block is not told of; who tells may still be at former ones. */
static bool is_silent(struct umt *subscriber)
{
	while (is_readable(umt_fd(subscriber), 10))
		read_all(subscriber);
	block_us(1000);
	return !is_readable(umt_fd(subscriber), 10);
}

static void told_once_while_wanted(unsigned backend)
{
	struct umt *subscriber = subscriber_of(backend, 0);
	struct umt_event event;
	uint64_t left, nr;
	int i;

	assert_int_equal(umt_thread_add(subscriber), 0);
	block_us(1000);
	assert_false(is_readable(umt_fd(subscriber), 10));
	assert_int_equal(umt_next(subscriber, &event), 0);

	umt_want(subscriber, 3);
	block_us(1000);
	assert_true(is_readable(umt_fd(subscriber), 60000));
	assert_int_equal(umt_next(subscriber, &event), 1);
	assert_int_equal(event.kind, UMT_IDLE);
	assert_true(event.cpu < umt_nr_cores(subscriber));
	assert_true(sums_of(subscriber).sleeps >= 1);

	/* One event for many blocks, as nobody reads: for each core, and one that
	 * a thread of the library is about to tell.  That may also be late, and
	 * tells anew what we have read; as does a core that we leave. */
	read_all(subscriber);
	for (i = 0; i < 100; i++)
		block_us(1);
	assert_true(is_readable(umt_fd(subscriber), 60000));
	left = nr_left(subscriber);
	nr = read_all(subscriber);
	left = nr_left(subscriber) - left;
	assert_in_range(nr, 1,
			(uint64_t)umt_nr_cores(subscriber) + left +
				(backend == UMT_PERF));

	umt_want(subscriber, 0);
	assert_true(holds_soon(is_silent(subscriber)));
	assert_int_equal(umt_thread_remove(subscriber), 0);
	umt_close(subscriber);
}

static void the_table_shows_it_too(unsigned backend)
{
	struct umt *subscriber = subscriber_of(backend, 0);
	int cpu;

	assert_int_equal(umt_idle(subscriber, 0), -ENOENT);
	assert_int_equal(umt_thread_add(subscriber), 0);
	assert_int_equal(umt_thread_remove(subscriber), 0);
	cpu = umt_idle(subscriber, 0);
	assert_in_range(cpu, 0, umt_nr_cores(subscriber) - 1);
	assert_int_equal(umt_ready(umt_cores(subscriber), cpu), 0);
	assert_int_equal(umt_idle(subscriber, umt_nr_cores(subscriber)),
			 -ENOENT);
	assert_int_equal(umt_idle(subscriber, -1), -ENOENT);
	umt_close(subscriber);
}

ON_EACH_BACKEND(told_once_while_wanted)
ON_EACH_BACKEND(the_table_shows_it_too)

KTEST_MAIN(KTEST_EACH(told_once_while_wanted),
	   KTEST_EACH(the_table_shows_it_too))
