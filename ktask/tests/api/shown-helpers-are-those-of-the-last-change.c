/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many helpers work on a job, as `ktask top` shows it, is right once none comes or
 * leaves, whatever the order in which threads that saw a change write what they counted.
 */
#include "support/work.h"

/* Between a thread's count and its being shown another helper comes or leaves. */
#define permits_show_helpers show_after_change
#include "user/user_host.c"
#undef permits_show_helpers

#define NR_HELPERS 2

static struct user_job job;
static struct kt_item *next; /* who comes or leaves then; NULL: nobody */
static unsigned shown;

static void come_or_leave(struct kt_item *item)
{
	if (item->host.counted)
		uncount_helper(item);
	else
		count_helper(item);
}

void show_after_change(int entry, unsigned helpers)
{
	struct kt_item *item = next;

	next = NULL;
	if (item)
		come_or_leave(item);
	shown = helpers;
}

static int begin_job(void **state)
{
	memset(&job, 0, sizeof(job));
	job.listed = 1;
	for (int i = 0; i < NR_HELPERS; i++)
		job.own_items[i].ctx = &job.ctx;
	next = NULL;
	return 0;
}

static void one_leaves_beside_one_that_comes(void **state)
{
	count_helper(&job.own_items[0]);
	assert_int_equal(shown, 1);
	next = &job.own_items[0];
	count_helper(&job.own_items[1]);
	assert_int_equal(shown, 1);
	uncount_helper(&job.own_items[1]);
	assert_int_equal(shown, 0);
}

static void both_leave_at_once(void **state)
{
	count_helper(&job.own_items[0]);
	count_helper(&job.own_items[1]);
	assert_int_equal(shown, 2);
	next = &job.own_items[0];
	uncount_helper(&job.own_items[1]);
	assert_int_equal(shown, 0);
}

static void one_comes_while_the_caller_reports(void **state)
{
	next = &job.own_items[0];
	show_helpers(&job);
	assert_int_equal(shown, 1);
}

#define T(name) cmocka_unit_test_setup(name, begin_job)

KTEST_MAIN(T(one_leaves_beside_one_that_comes), T(both_leave_at_once),
	   T(one_comes_while_the_caller_reports))
