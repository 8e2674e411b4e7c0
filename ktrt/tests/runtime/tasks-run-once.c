/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Every task runs exactly once, also nested ones, and a wait returns when all
 * children are complete, not earlier.
 */
#include "support/runs.h"

static unsigned long ran;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static void many_independent(void)
{
	unsigned long nr = KTEST_TSAN ? 20000 : 200000;

	set(ran, 0);
	for (unsigned long i = 0; i < nr; i++)
		assert_int_equal(ktrt_spawn(count_task, NULL), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(ran), nr);
}

static int make_many(void *arg)
{
	unsigned long nr = (unsigned long)arg;

	for (unsigned long i = 0; i < nr; i++)
		if (ktrt_spawn(count_task, NULL))
			return -EIO;
	return 0;
}

static int make_and_wait(void *arg)
{
	unsigned long before = get(ran);
	int error = make_many(arg);

	if (!error)
		error = ktrt_wait();
	return error ? error : get(ran) < before + (unsigned long)arg;
}

static void nested_ones_count_for_their_parents(void)
{
	set(ran, 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(ktrt_spawn(make_many, (void *)100), 0);
		assert_int_equal(ktrt_spawn(make_and_wait, (void *)100), 0);
	}
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(ran), 20000);
}

struct fib {
	int n;
	unsigned long result;
};

static int compute_fib(void *arg)
{
	struct fib *this = arg;
	struct fib one = { this->n - 1, 0 }, two = { this->n - 2, 0 };

	if (this->n < 2) {
		this->result = (unsigned long)this->n;
		return 0;
	}
	if (ktrt_spawn(compute_fib, &one) || ktrt_spawn(compute_fib, &two))
		return -ENOMEM;
	if (ktrt_wait())
		return -EIO;
	this->result = one.result + two.result;
	return 0;
}

static void fork_and_join(void)
{
	struct fib top = { KTEST_TSAN ? 16 : 22, 0 };

	assert_int_equal(ktrt_run(compute_fib, &top), 0);
	assert_int_equal(top.result, KTEST_TSAN ? 987 : 17711);
}

static void in_all_ways(void **state)
{
	in_each_way(many_independent);
	in_each_way(nested_ones_count_for_their_parents);
	in_each_way(fork_and_join);
}

KTEST_MAIN(KTEST(in_all_ways))
