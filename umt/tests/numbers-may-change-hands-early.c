/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that executes a program takes the number of its process's first
 * thread, perhaps before that is told to be gone: which of the two an event is
 * of is known all the same.
 */
#include "cmd/thread_account.c"
#include "cmd/thread_names.c"

#include "ktest.h"

#define FIRST 100u
#define OTHER 101u

static struct account account;

static void tell_event(uint32_t tid, enum umt_kind kind)
{
	struct umt_event said = { .time_ns = account.now_ns + 10,
				  .tid = tid,
				  .detail = (int)FIRST,
				  .kind = kind };

	assert_int_equal(account_event(&account, &said), 0);
}

static void begin_with_two(void)
{
	memset(&account, 0, sizeof(account));
	assert_int_equal(account_begin(&account, 1), 0);
	tell_event(FIRST, UMT_NEW);
	tell_event(FIRST, UMT_RUN);
	tell_event(OTHER, UMT_NEW);
	tell_event(FIRST, UMT_PREEMPT);
	tell_event(OTHER, UMT_RUN);
}

static void takes_the_number(void)
{
	tell_event(OTHER, UMT_GONE);
	tell_event(FIRST, UMT_NEW);
	tell_event(FIRST, UMT_RUN);
}

/* The first, the other, and the other with the number of the first. */
static void end_with(enum state heir)
{
	assert_int_equal(account.nr_threads, 3);
	assert_int_equal(account.threads[0].state, GONE);
	assert_int_equal(account.threads[1].state, GONE);
	assert_int_equal(account.threads[2].state, heir);
	assert_int_equal(account.count[GONE], heir == GONE ? 3 : 2);
	account_end(&account);
}

static void before_its_end_is_told(void **state)
{
	begin_with_two();
	takes_the_number();
	tell_event(FIRST, UMT_GONE);
	tell_event(FIRST, UMT_BLOCK);
	assert_int_equal(account.threads[2].ns[RUNNING], 20);
	assert_int_equal(account.cores[0].running, 0);
	end_with(BLOCKED);
}

static void after_its_end_is_told(void **state)
{
	begin_with_two();
	tell_event(FIRST, UMT_GONE);
	takes_the_number();
	tell_event(FIRST, UMT_BLOCK);
	end_with(BLOCKED);
}

static void and_ends_itself(void **state)
{
	begin_with_two();
	takes_the_number();
	tell_event(FIRST, UMT_GONE);
	tell_event(FIRST, UMT_GONE);
	assert_int_equal(account.cores[0].running, 0);
	end_with(GONE);
}

KTEST_MAIN(KTEST(before_its_end_is_told), KTEST(after_its_end_is_told),
	   KTEST(and_ends_itself))
