/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When nobody reads and the ring is full, events are lost and that is counted;
 * the counts stay right, the table still shows idle cores, and once somebody
 * reads again, events come again.
 */
#include "support/subscribers.h"

static void lost_events_are_counted(void **state)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_BPF,
				       .flags = UMT_TRACE,
				       .ring_bytes = 4096 };
	struct umt_event event;
	struct umt *subscriber;
	int nr = 0;

	umt_close(subscriber_of(UMT_BPF, UMT_TRACE));
	assert_int_equal(umt_open(&subscriber, &options), 0);
	umt_want(subscriber, 1);
	assert_int_equal(umt_thread_add(subscriber), 0);
	if (nap_often(1, 500, 100000) == 100000)
		ktest_skip("naps are over before they begin here");
	assert_true(sums_of(subscriber).lost > 0);
	/* It may move to a core that was added up already. */
	assert_true(holds_soon(ready_of(subscriber) == 1));
	assert_true(sums_of(subscriber).sleeps >= 250);
	assert_int_equal(umt_thread_remove(subscriber), 0);
	assert_all_zero(subscriber);
	assert_true(umt_idle(subscriber, 0) >= 0);

	while (umt_next(subscriber, &event) == 1)
		nr++;
	assert_true(nr > 10);
	assert_int_equal(umt_thread_add(subscriber), 0);
	nap_often(1000, 1, 1000);
	assert_int_equal(umt_next(subscriber, &event), 1);
	assert_int_equal(event.kind, UMT_NEW);
	for (nr = 0; umt_next(subscriber, &event) == 1;)
		nr += event.kind == UMT_IDLE;
	assert_true(nr >= 1);
	umt_close(subscriber);
}

KTEST_MAIN(KTEST(lost_events_are_counted))
