/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks never wait for each other in a circle, whatever they name: data in
 * opposite orders, the same datum several times and in all modes, ranges that
 * overlap each other, the data of the task above.
 */
#include "support/runs.h"

static char data[64];
static unsigned long done;

static int count_task(void *arg)
{
	more(done);
	return 0;
}

static int spawn_ordered(ktrt_func func, const struct ktrt_dep *deps, size_t nr)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = nr;
	return ktrt_spawn_attr(func, NULL, &attr);
}

/* What would hang in a wait is a failure once nothing has ended for a minute. */
static void all_end(unsigned long nr)
{
	assert_true(comes_to(done, nr));
	assert_int_equal(ktrt_wait(), 0);
}

static void opposite_orders(void)
{
	set(done, 0);
	for (int i = 0; i < 500; i++) {
		const struct ktrt_dep there[] = { { &data[0], 0, KTRT_IN },
						  { &data[1], 0, KTRT_OUT } };
		const struct ktrt_dep back[] = { { &data[1], 0, KTRT_IN },
						 { &data[0], 0, KTRT_OUT } };
		const struct ktrt_dep both[] = { { &data[1], 0, KTRT_INOUT },
						 { &data[0], 0, KTRT_INOUT } };

		assert_int_equal(spawn_ordered(count_task, there, 2), 0);
		assert_int_equal(spawn_ordered(count_task, back, 2), 0);
		assert_int_equal(spawn_ordered(count_task, both, 2), 0);
	}
	all_end(1500);
}

/* A ring in which each reads its neighbour's and writes its own. */
static void spawn_rings(void)
{
	set(done, 0);
	for (int i = 0; i < 2000; i++) {
		const struct ktrt_dep deps[] = {
			{ &data[i % 7], 0, KTRT_OUT },
			{ &data[(i + 1) % 7], 0, KTRT_IN },
		};

		assert_int_equal(spawn_ordered(count_task, deps, 2), 0);
	}
	all_end(2000);
}

static void one_datum_many_times(void)
{
	set(done, 0);
	for (unsigned i = 0; i < 600; i++) {
		struct ktrt_dep deps[5];

		for (unsigned j = 0; j < 5; j++)
			deps[j] = (struct ktrt_dep){ &data[0], 0,
						     1 + (i + j * j) % 3 };
		assert_int_equal(spawn_ordered(count_task, deps, 5), 0);
	}
	all_end(600);
}

static void ranges_that_overlap(void)
{
	set(done, 0);
	for (unsigned i = 0; i < 600; i++) {
		struct ktrt_dep deps[4];

		for (unsigned j = 0; j < 4; j++)
			deps[j] =
				(struct ktrt_dep){ &data[(i * 5 + j * 3) % 32],
						   1 + (i + 7 * j) % 32,
						   1 + (i + j) % 3 };
		assert_int_equal(spawn_ordered(count_task, deps, 4), 0);
	}
	all_end(600);
}

/* Its own data are not the parent's to wait for, nor the parent's its own. */
static int name_the_same_below(void *arg)
{
	const struct ktrt_dep deps[] = { { &data[0], 0, KTRT_INOUT },
					 { &data[1], 0, KTRT_INOUT } };
	int error = 0;

	for (int i = 0; i < 10 && !error; i++)
		error = spawn_ordered(count_task, deps, 2);
	return error ? error : ktrt_wait();
}

static void the_parents_data(void)
{
	const struct ktrt_dep deps[] = { { &data[1], 0, KTRT_INOUT },
					 { &data[0], 0, KTRT_INOUT } };

	set(done, 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(spawn_ordered(name_the_same_below, deps, 2),
				 0);
	all_end(500);
}

static void in_all_ways(void **state)
{
	in_each_way(opposite_orders);
	in_each_way(spawn_rings);
	in_each_way(one_datum_many_times);
	in_each_way(ranges_that_overlap);
	in_each_way(the_parents_data);
}

KTEST_MAIN(KTEST(in_all_ways))
