/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is kept of threads that are gone can be given up, again and again; the
 * others stay, are found, and keep their times.
 */
#include "cmd/thread_account.c"
#include "cmd/thread_names.c"

#include "ktest.h"

#define STAY 3
#define NR_GONE 500
/* Of the same bucket as the first that stays. */
#define FIRST_GONE (1 + BUCKETS)

static struct account account;

static void tell_event(uint32_t tid, enum umt_kind kind)
{
	struct umt_event said = { .time_ns = account.now_ns + 1,
				  .tid = tid,
				  .kind = kind };

	assert_int_equal(account_event(&account, &said), 0);
}

static void begin_and_end_some(void)
{
	for (uint32_t i = 0; i < NR_GONE; i++) {
		tell_event(FIRST_GONE + i * BUCKETS / 2, UMT_NEW);
		tell_event(FIRST_GONE + i * BUCKETS / 2, UMT_RUN);
		tell_event(FIRST_GONE + i * BUCKETS / 2, UMT_GONE);
	}
}

static void who_stays_is_found(void **state)
{
	unsigned capacity;

	assert_int_equal(account_begin(&account, 1), 0);
	for (uint32_t tid = 1; tid <= STAY; tid++) {
		tell_event(tid, UMT_NEW);
		begin_and_end_some();
	}
	assert_int_equal(account.nr_threads, STAY + STAY * NR_GONE);
	assert_int_equal(account.count[GONE], STAY * NR_GONE);
	capacity = account.capacity;
	for (int round = 0; round < 20; round++) {
		account_forget(&account);
		assert_int_equal(account.nr_threads, STAY);
		assert_int_equal(account.count[GONE], 0);
		assert_int_equal(account.count[READY], STAY);
		begin_and_end_some();
	}
	assert_int_equal(account.capacity, capacity);
	for (uint32_t tid = 1; tid <= STAY; tid++) {
		tell_event(tid, UMT_RUN);
		assert_non_null(find_thread(&account, tid));
		assert_true(find_thread(&account, tid)->ns[READY] >
			    20 * NR_GONE);
		tell_event(tid, UMT_GONE);
		assert_null(find_thread(&account, tid));
	}
	account_forget(&account);
	assert_int_equal(account.nr_threads, 0);
	account_end(&account);
}

KTEST_MAIN(KTEST(who_stays_is_found))
