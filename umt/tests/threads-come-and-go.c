/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads are counted from when they are added until they are removed or end,
 * for each of their subscribers, on one core, and not while they are blocked.
 */
#include "support/subscribers.h"

#include <pthread.h>

struct life {
	struct umt *subscriber;
	int orders[2], answers[2];
	bool removes_itself;
};

static void begin_life(struct life *life, struct umt *subscriber)
{
	memset(life, 0, sizeof(*life));
	life->subscriber = subscriber;
	assert_int_equal(pipe(life->orders), 0);
	assert_int_equal(pipe(life->answers), 0);
}

static void end_life(struct life *life)
{
	int i;

	for (i = 0; i < 2; i++) {
		close(life->orders[i]);
		close(life->answers[i]);
	}
}

/* Computes from one order to be busy until the next; a pipe blocks it. */
static void *live_by_orders(void *arg)
{
	struct life *life = arg;
	char byte = 0;

	assert_int_equal(umt_thread_add(life->subscriber), 0);
	assert_int_equal(write(life->answers[1], &byte, 1), 1);
	while (block_reading(life->orders[0], &byte) == 1 && byte == 'w')
		assert_int_equal(write(life->answers[1], &byte, 1), 1);
	if (life->removes_itself)
		assert_int_equal(umt_thread_remove(life->subscriber), 0);
	return NULL;
}

static void send_order(struct life *life, char what)
{
	assert_int_equal(write(life->orders[1], &what, 1), 1);
}

static void wait_for(struct life *life)
{
	char byte;

	assert_int_equal(read(life->answers[0], &byte, 1), 1);
}

static void blocked_threads_are_not_ready(unsigned backend)
{
	struct umt *subscriber = subscriber_of(backend, 0);
	pthread_t thread;
	struct life life;
	int i;

	begin_life(&life, subscriber);
	pthread_create(&thread, NULL, live_by_orders, &life);
	wait_for(&life);
	for (i = 0; i < 20; i++) {
		/* With nothing to read it must block once more. */
		assert_true(holds_soon(sums_of(subscriber).sleeps >=
					       (uint64_t)i + 1 &&
				       !ready_of(subscriber)));
		send_order(&life, 'w');
		wait_for(&life);
	}
	send_order(&life, 'e');
	pthread_join(thread, NULL);
	assert_true(holds_soon(!ready_of(subscriber)));
	assert_all_zero(subscriber);
	end_life(&life);
	umt_close(subscriber);
}

static void running_threads_are_ready(unsigned backend)
{
	struct umt *subscriber = subscriber_of(backend, 0);

	assert_int_equal(umt_thread_add(subscriber), 0);
	assert_true(holds_soon(ready_of(subscriber) == 1));
	assert_int_equal(umt_thread_add(subscriber), -EEXIST);
	block_us(2000);
	assert_true(holds_soon(ready_of(subscriber) == 1));
	assert_int_equal(umt_thread_remove(subscriber), 0);
	assert_all_zero(subscriber);
	assert_int_equal(umt_thread_remove(subscriber), -ENOENT);
	umt_close(subscriber);
}

static void every_subscriber_has_its_own_counts(unsigned backend)
{
	struct umt *subscribers[UMT_MEMBERSHIPS + 1];
	int i;

	for (i = 0; i <= UMT_MEMBERSHIPS; i++)
		subscribers[i] = subscriber_of(backend, 0);
	for (i = 0; i < UMT_MEMBERSHIPS; i++)
		assert_int_equal(umt_thread_add(subscribers[i]), 0);
	assert_int_equal(umt_thread_add(subscribers[i]), -EUSERS);
	block_us(1000);
	for (i = 0; i < UMT_MEMBERSHIPS; i++) {
		assert_true(holds_soon(ready_of(subscribers[i]) == 1));
		assert_true(holds_soon(sums_of(subscribers[i]).sleeps >= 1));
	}
	assert_int_equal(ready_of(subscribers[i]), 0);
	/* From the middle; the others stay. */
	assert_int_equal(umt_thread_remove(subscribers[1]), 0);
	block_us(1000);
	assert_all_zero(subscribers[1]);
	assert_true(holds_soon(ready_of(subscribers[0]) == 1));
	assert_int_equal(umt_thread_add(subscribers[UMT_MEMBERSHIPS]), 0);
	for (i = 0; i <= UMT_MEMBERSHIPS; i++)
		umt_close(subscribers[i]);
}

/* Its threads need not know; numbers of subscribers are used again. */
static void subscribers_close_under_their_threads(unsigned backend)
{
	struct umt *stays = subscriber_of(backend, 0);
	int i;

	assert_int_equal(umt_thread_add(stays), 0);
	for (i = 0; i < 80; i++) {
		struct umt *subscriber = subscriber_of(backend, 0);

		assert_int_equal(umt_thread_add(subscriber), 0);
		umt_close(subscriber);
		if (i % 3)
			block_us(1);
	}
	assert_true(holds_soon(ready_of(stays) == 1));
	assert_int_equal(umt_thread_remove(stays), 0);
	assert_all_zero(stays);
	umt_close(stays);
}

static void threads_may_just_end(unsigned backend)
{
	struct umt *subscriber = subscriber_of(backend, 0);
	pthread_t thread;
	struct life life;
	int i;

	for (i = 0; i < 50; i++) {
		begin_life(&life, subscriber);
		life.removes_itself = i % 2;
		pthread_create(&thread, NULL, live_by_orders, &life);
		wait_for(&life);
		send_order(&life, 'e');
		pthread_join(thread, NULL);
		end_life(&life);
	}
	assert_true(holds_soon(!ready_of(subscriber)));
	assert_all_zero(subscriber);
	assert_int_equal(sums_of(subscriber).lost, 0);
	umt_close(subscriber);
}

ON_EACH_BACKEND(blocked_threads_are_not_ready)
ON_EACH_BACKEND(running_threads_are_ready)
ON_EACH_BACKEND(every_subscriber_has_its_own_counts)
ON_EACH_BACKEND(subscribers_close_under_their_threads)
ON_EACH_BACKEND(threads_may_just_end)

KTEST_MAIN(KTEST_EACH(blocked_threads_are_not_ready),
	   KTEST_EACH(running_threads_are_ready),
	   KTEST_EACH(every_subscriber_has_its_own_counts),
	   KTEST_EACH(subscribers_close_under_their_threads),
	   KTEST_EACH(threads_may_just_end))
