/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libumt as the monitor of libktask: threads of a job that block are replaced,
 * and afterwards none of them is monitored.
 */
#include "support/subscribers.h"

#include <ktask/umt.h>

static unsigned at_once, most_at_once;

static int sleep_units(void *start, void *end, void *arg)
{
	unsigned now = __atomic_add_fetch(&at_once, 1, __ATOMIC_SEQ_CST);

	if (now > load(most_at_once))
		__atomic_store_n(&most_at_once, now, __ATOMIC_SEQ_CST);
	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++)
		nap_us(1000);
	__atomic_sub_fetch(&at_once, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void run_job(uintptr_t units)
{
	DEFINE_KTASK_CTL(ctl, sleep_units, NULL, 1);

	at_once = most_at_once = 0;
	assert_int_equal(ktask_run(NULL, units, &ctl), 0);
}

/* They are of the lowest priority: not where others use all CPUs. */
static bool are_replaced(void)
{
	bool replaced = false;
	int i;

	for (i = 0; i < 10 && !replaced; i++) {
		run_job(300);
		replaced = most_at_once > 2;
	}
	return replaced;
}

static bool are_replaced_by(struct umt *subscriber)
{
	bool replaced;

	assert_int_equal(ktask_use_umt(subscriber), 0);
	replaced = are_replaced();
	assert_int_equal(ktask_set_monitor(NULL), 0);
	return replaced;
}

/* Without UMT so often where with it never: then it is UMT. */
#define ENOUGH 5

static void they_are_replaced(unsigned backend)
{
	struct umt *subscriber = subscriber_of(backend, 0);
	bool replaced = are_replaced_by(subscriber);
	int without = 0;

	/* Whoever else is busy gives way for moments only: by turns. */
	for (int i = 0; i < 2 * ENOUGH && without < ENOUGH && !replaced; i++) {
		without += are_replaced();
		replaced = are_replaced_by(subscriber);
	}
	if (!replaced && without < ENOUGH) {
		umt_close(subscriber);
		ktest_skip("no workers are to be had here");
	}
	assert_true(replaced);
	assert_true(holds_soon(!ready_of(subscriber)));
	assert_true(sums_of(subscriber).sleeps > 20);
	assert_true(sums_of(subscriber).moved_in >= 3);
	umt_close(subscriber);
	run_job(100);
}

static void they_are_replaced_bpf(void **state)
{
	they_are_replaced(UMT_BPF);
}

static void they_are_replaced_perf(void **state)
{
	they_are_replaced(UMT_PERF);
}

static void explicit_calls_say_too_little(void **state)
{
	struct umt *subscriber = subscriber_of(UMT_EXPLICIT, 0);

	assert_int_equal(ktask_use_umt(subscriber), -ENOTSUP);
	umt_close(subscriber);
}

KTEST_MAIN(KTEST(they_are_replaced_bpf), KTEST(they_are_replaced_perf),
	   KTEST(explicit_calls_say_too_little))
