/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Of several subscribers that trace a thread each is told when it becomes or
 * ceases to be its own, and not when it becomes another's.
 */
#include "support/subscribers.h"

#include <sys/syscall.h>
#include <unistd.h>

/* So often was the calling thread said to be new, and to be gone. */
struct told {
	int born, gone;
};

static struct told told_to(struct umt *subscriber)
{
	uint32_t self = (uint32_t)syscall(SYS_gettid);
	struct told told = { 0 };
	struct umt_event event;

	while (umt_next(subscriber, &event) == 1) {
		told.born += event.tid == self && event.kind == UMT_NEW;
		told.gone += event.tid == self && event.kind == UMT_GONE;
	}
	assert_int_equal(sums_of(subscriber).lost, 0);
	return told;
}

static void assert_told(struct umt *subscriber, int born, int gone)
{
	struct told told = told_to(subscriber);

	assert_int_equal(told.born, born);
	assert_int_equal(told.gone, gone);
}

static void each_its_own(void **state)
{
	struct umt *first = subscriber_of(UMT_BPF, UMT_TRACE);
	struct umt *other = subscriber_of(UMT_BPF, UMT_TRACE);
	struct umt *plain = subscriber_of(UMT_BPF, 0);

	assert_int_equal(umt_thread_add(first), 0);
	assert_told(first, 1, 0);
	assert_int_equal(umt_thread_add(other), 0);
	assert_int_equal(umt_thread_add(plain), 0);
	assert_told(first, 0, 0);
	assert_told(other, 1, 0);
	assert_int_equal(umt_thread_remove(other), 0);
	assert_int_equal(umt_thread_remove(plain), 0);
	assert_told(first, 0, 0);
	assert_told(other, 0, 1);
	/* It is the first one's still. */
	block_us(1000);
	assert_int_equal(umt_thread_remove(first), 0);
	assert_told(first, 0, 1);
	assert_told(other, 0, 0);
	umt_close(plain);
	umt_close(other);
	umt_close(first);
}

KTEST_MAIN(KTEST(each_its_own))
