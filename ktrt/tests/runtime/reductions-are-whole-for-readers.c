/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks of a reduction add to copies at the same time; who uses the data
 * afterwards finds all of it there, once.
 */
#include "support/runs.h"

static unsigned long total, seen;
static unsigned combined, wrong;

static void add_copy(void *data, void *copy, void *arg)
{
	*(unsigned long *)data += *(unsigned long *)copy;
	more(combined);
}

static void multiply_copy(void *data, void *copy, void *arg)
{
	*(unsigned long *)data *= *(unsigned long *)copy;
}

static const unsigned long one = 1;

static const struct ktrt_reduction sum = { sizeof(sum), &total,	  sizeof(total),
					   NULL,	add_copy, NULL };
static const struct ktrt_reduction times = { sizeof(times), &total,
					     sizeof(total), &one,
					     multiply_copy, NULL };

static int add_number(void *arg)
{
	unsigned long *copy = ktrt_reduction_copy(&sum);

	if (!copy)
		return -ENOMEM;
	*copy += (unsigned long)arg;
	return 0;
}

static int double_it(void *arg)
{
	unsigned long *copy = ktrt_reduction_copy(&times);

	if (!copy || ktrt_reduction_copy(&sum))
		return -EINVAL;
	*copy *= 2;
	return 0;
}

/* By children, which may be on other threads, and after it has slept. */
static int add_below(void *arg)
{
	unsigned long number = (unsigned long)arg;
	int error = ktrt_spawn(add_number, (void *)(number / 2));

	if (!error)
		error = ktrt_spawn(add_number, (void *)(number - number / 2));
	if (!error && number % 2)
		error = ktrt_wait();
	if (number % 16 == 0)
		nap_us(50);
	return error;
}

static int see_total(void *arg)
{
	set(seen, total);
	return 0;
}

static int do_nothing(void *arg)
{
	return 0;
}

static int count_wrong(void *arg)
{
	if (total != (unsigned long)arg)
		more(wrong);
	return 0;
}

static int spawn_on(ktrt_func func, unsigned long arg, const void *addr,
		    unsigned mode)
{
	const struct ktrt_dep dep = { addr, 0, mode };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	return ktrt_spawn_attr(func, (void *)arg, &attr);
}

static unsigned long spawn_sum(unsigned long nr)
{
	for (unsigned long i = 1; i <= nr; i++)
		assert_int_equal(spawn_on(i % 3 ? add_number : add_below, i,
					  &sum, KTRT_REDUCTION),
				 0);
	return nr * (nr + 1) / 2;
}

static void tasks_find_it(void)
{
	for (int round = 0; round < 20; round++) {
		unsigned long all;

		total = 5;
		all = spawn_sum(100) + 5;
		assert_int_equal(spawn_on(count_wrong, all, &total, KTRT_IN),
				 0);
		/* Two sums of the same data are one after the other. */
		for (int i = 0; i < 3; i++)
			assert_int_equal(
				spawn_on(double_it, 0, &times, KTRT_REDUCTION),
				0);
		all = all * 8 + spawn_sum(50);
		assert_int_equal(spawn_on(see_total, 0, &total, KTRT_INOUT), 0);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(get(wrong), 0);
		assert_int_equal(get(seen), all);
		assert_int_equal(total, all);
	}
}

static void waiters_find_it(void)
{
	const struct ktrt_dep dep = { &total, 0, KTRT_IN };
	const struct ktrt_dep adds = { &sum, 0, KTRT_REDUCTION };
	unsigned long all;

	total = 0;
	all = spawn_sum(64);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(total, all);
	/* The sum goes on where nobody used it in between. */
	all += spawn_sum(64);
	assert_int_equal(ktrt_wait_for(&dep, 1), 0);
	assert_int_equal(total, all);
	assert_int_equal(ktrt_wait_for(&adds, 1), -EINVAL);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(total, all);
}

static int make_sum(void *arg)
{
	for (unsigned long i = 1; i <= 10; i++)
		if (spawn_on(add_number, i, &sum, KTRT_REDUCTION))
			return -EIO;
	return 0;
}

/* Nobody waits inside. */
static void makers_leave_it_whole(void)
{
	total = 0;
	for (int i = 0; i < 50; i++)
		assert_int_equal(spawn_on(make_sum, 0, &total, KTRT_INOUT), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(total, 50 * 55);
}

/* Each copy is combined, or it would not be freed. */
static void tables_may_be_renewed(void)
{
	static char data[3000];
	unsigned long all;

	total = 0;
	all = spawn_sum(30);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(spawn_on(do_nothing, 0, &data[i], KTRT_OUT),
				 0);
	assert_int_equal(spawn_on(see_total, 0, &total, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(total, all);
	assert_int_equal(get(seen), all);
}

static void ranges_meet_it(void)
{
	const struct ktrt_dep range = { &total, sizeof(total), KTRT_INOUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	unsigned long all;

	total = 0;
	all = spawn_sum(40);
	attr.deps = &range;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_spawn_attr(count_wrong, (void *)all, &attr), 0);
	all += spawn_sum(40);
	assert_int_equal(ktrt_spawn_attr(count_wrong, (void *)all, &attr), 0);
	all += spawn_sum(40);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(wrong), 0);
	assert_int_equal(total, all);
}

static int fail_now(void *arg)
{
	unsigned long *copy = ktrt_reduction_copy(&sum);

	*copy += 1;
	return 31;
}

static void failures_are_seen(void)
{
	set(seen, 0);
	total = 0;
	assert_int_equal(spawn_on(fail_now, 0, &sum, KTRT_REDUCTION), 0);
	assert_int_equal(spawn_on(add_number, 1, &sum, KTRT_REDUCTION), 0);
	assert_int_equal(spawn_on(see_total, 0, &total, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 31);
	assert_int_equal(get(seen), 0);
}

static void wrong_ones_are_refused(void)
{
	struct ktrt_reduction bad = KTRT_REDUCTION_INIT;
	struct ktrt_dep dep = { &sum, 8, KTRT_REDUCTION };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	assert_int_equal(spawn_on(see_total, 0, NULL, KTRT_REDUCTION), -EINVAL);
	assert_int_equal(spawn_on(see_total, 0, &bad, KTRT_REDUCTION), -EINVAL);
	bad.combine = add_copy;
	assert_int_equal(spawn_on(see_total, 0, &bad, KTRT_REDUCTION), -EINVAL);
	bad.bytes = 8;
	bad.struct_size = 8;
	assert_int_equal(spawn_on(see_total, 0, &bad, KTRT_REDUCTION), -EINVAL);
	assert_int_equal(spawn_on(see_total, 0, &sum, 8), -EINVAL);
	assert_int_equal(spawn_on(see_total, 0, &sum, 15), -EINVAL);
	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_spawn_attr(see_total, NULL, &attr), -EINVAL);
	assert_null(ktrt_reduction_copy(&sum));
}

static void graphs_have_none(void)
{
	const struct ktrt_dep dep = { &sum, 0, KTRT_REDUCTION };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_graph *graph;

	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_graph_new(&graph), 0);
	assert_int_equal(ktrt_graph_add(graph, see_total, NULL, &attr),
			 -EINVAL);
	ktrt_graph_free(graph);
}

/* Threads have a copy each: no more are combined than there are threads. */
static void copies_are_few(void)
{
	int indices = ktrt_thread_indices();

	set(combined, 0);
	total = 0;
	spawn_sum(2000);
	assert_int_equal(ktrt_wait(), 0);
	assert_in_range(get(combined), 1, indices);
}

static int add_to_any(void *reduction)
{
	unsigned long *copy = ktrt_reduction_copy(reduction);

	if (!copy)
		return -ENOMEM;
	*copy += 1;
	return 0;
}

/* What was added is lost then, but not its memory: sanitizers look for that. */
static void spoilt_ones_leak_nothing(void)
{
	struct ktrt_reduction spoilt = sum;
	struct ktrt_dep dep = { &spoilt, 0, KTRT_REDUCTION };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	total = 0;
	for (int i = 0; i < 50; i++)
		assert_int_equal(ktrt_spawn_attr(add_to_any, &spoilt, &attr),
				 0);
	/* They may have ended, and nobody has combined what they added. */
	spoilt.struct_size = 1;
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(total, 0);
	tasks_find_it();
}

static void all_of_it(void)
{
	tasks_find_it();
	waiters_find_it();
	makers_leave_it_whole();
	tables_may_be_renewed();
	failures_are_seen();
	wrong_ones_are_refused();
	graphs_have_none();
	copies_are_few();
	ranges_meet_it();
	spoilt_ones_leak_nothing();
	tasks_find_it();
	waiters_find_it();
}

static void reductions_are_whole(void **state)
{
	in_each_way(all_of_it);
}

KTEST_MAIN(KTEST(reductions_are_whole))
