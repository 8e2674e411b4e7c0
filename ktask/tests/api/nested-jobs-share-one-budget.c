/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs inside chunks of jobs: all is done, nobody waits for ever, and the
 * threads of all of them together stay within the outermost job's number.
 */
#include "ktest.h"

#include <pthread.h>
#include <sched.h>

#include "marks.h"

#define OUTER 40
#define INNER 300
#define NR_CALLERS 12

struct tree {
	int nesting;
	size_t units; /* done at the leaves */
	int working, most; /* threads in a leaf */
	unsigned max_threads; /* of every job below the outermost */
};

static int do_leaf(void *start, void *end, void *arg)
{
	struct tree *tree = arg;
	int working = __atomic_add_fetch(&tree->working, 1, __ATOMIC_SEQ_CST);
	int most = __atomic_load_n(&tree->most, __ATOMIC_SEQ_CST);

	while (working > most &&
	       !__atomic_compare_exchange_n(&tree->most, &most, working, 0,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	for (volatile int i = 0; i < 300; i++)
		;
	__atomic_add_fetch(&tree->units, (size_t)((char *)end - (char *)start),
			   __ATOMIC_SEQ_CST);
	__atomic_sub_fetch(&tree->working, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int inner_job(void *start, void *end, void *arg)
{
	struct tree *tree = arg;
	DEFINE_KTASK_CTL(ctl, do_leaf, tree, 1);

	ktask_ctl_set_max_threads(&ctl, tree->max_threads);
	for (char *unit = start; unit < (char *)end; unit++)
		if (ktask_run(NULL, INNER, &ctl))
			return 1;
	return 0;
}

static int middle_job(void *start, void *end, void *arg)
{
	DEFINE_KTASK_CTL(ctl, inner_job, arg, 1);

	return ktask_run(start, (size_t)((char *)end - (char *)start), &ctl);
}

static void jobs_in_jobs_in_jobs_are_done(void **state)
{
	for (int round = 0; round < 20; round++) {
		struct tree tree = { 0 };
		DEFINE_KTASK_CTL(ctl, middle_job, &tree, 1);

		assert_int_equal(ktask_run(NULL, OUTER, &ctl), 0);
		assert_int_equal(tree.units, OUTER * INNER);
	}
}

static void the_outermost_number_holds_for_all(void **state)
{
	for (unsigned max = 1; max <= 2; max++) {
		struct tree tree = { .max_threads = 8 };
		DEFINE_KTASK_CTL(ctl, inner_job, &tree, 1);

		ktask_ctl_set_max_threads(&ctl, max);
		for (int round = 0; round < 20; round++)
			assert_int_equal(ktask_run(NULL, OUTER, &ctl), 0);
		assert_int_equal(tree.units, 20 * OUTER * INNER);
		assert_true(tree.most <= (int)max);
	}
}

static void *call_nested(void *arg)
{
	struct tree tree = { 0 };
	DEFINE_KTASK_CTL(ctl, inner_job, &tree, 1);
	intptr_t bad = 0;

	for (int round = 0; round < 10; round++)
		bad |= ktask_run(NULL, OUTER, &ctl) != 0;
	return (void *)(bad | (tree.units != 10 * OUTER * INNER));
}

/* More callers than there are helpers: nobody waits for what is not there. */
static void an_exhausted_pool_stops_nobody(void **state)
{
	pthread_t threads[NR_CALLERS];
	void *bad;

	for (int i = 0; i < NR_CALLERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, call_nested, NULL),
			0);
	for (int i = 0; i < NR_CALLERS; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
}

static int fail_inside(void *start, void *end, void *arg)
{
	struct marks *marks = arg;
	DEFINE_KTASK_CTL(ctl, marks_chunk, marks, 1);

	ktask_ctl_set_undo_func(&ctl, marks_undo);
	return ktask_run(start, (size_t)((char *)end - (char *)start), &ctl);
}

/* The inner job undoes its part, and the outer one what it knows as done. */
static void a_failure_inside_is_undone_by_both(void **state)
{
	static struct marks marks;

	for (size_t fail_at = 0; fail_at < 2000; fail_at += 37) {
		DEFINE_KTASK_CTL(ctl, fail_inside, &marks, 100);

		marks_reset(&marks, 2000);
		marks.fail_at = fail_at;
		marks.error = -7;
		ktask_ctl_set_undo_func(&ctl, marks_undo);
		assert_int_equal(ktask_run(marks.done, 2000, &ctl), -7);
		/* Order holds within a job, not between the two. */
		marks.undo_in_order = 1;
		marks_check_undone(&marks);
	}
}

KTEST_MAIN(KTEST(jobs_in_jobs_in_jobs_are_done),
	   KTEST(the_outermost_number_holds_for_all),
	   KTEST(an_exhausted_pool_stops_nobody),
	   KTEST(a_failure_inside_is_undone_by_both))
