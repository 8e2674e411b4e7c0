/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A million tasks with a dependence on one address, writers and readers, run in order,
 * and so does one task that names that address very often.
 */
#include "support/runs.h"

#define MANY (KTEST_TSAN || KTEST_ASAN ? 30000u : 1000000u)
#define NAMES 20000

static unsigned long datum, ran; /* @datum is plain: dependences order it */
static unsigned wrong;

/* @arg: how many have written before. */
static int write_it(void *arg)
{
	if (datum++ != (uintptr_t)arg)
		more(wrong);
	more(ran);
	return 0;
}

static int read_it(void *arg)
{
	if (datum != (uintptr_t)arg)
		more(wrong);
	more(ran);
	return 0;
}

static int make_all(void *arg)
{
	uint64_t random = *(uint64_t *)arg;
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &datum, 0, 0 };
	uintptr_t written = 0;
	int error = 0;

	attr.deps = &dep;
	attr.nr_deps = 1;
	for (unsigned i = 0; i < MANY && !error; i++) {
		bool writes = !ktest_random_below(&random, 3);

		dep.mode = writes ? KTRT_INOUT : KTRT_IN;
		error = ktrt_spawn_attr(writes ? write_it : read_it,
					(void *)written, &attr);
		written += writes;
	}
	return error ? error : ktrt_wait();
}

/* Once in its chain, as it writes. */
static void name_it_often(void)
{
	static struct ktrt_dep deps[NAMES];
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	uintptr_t written = datum;

	for (size_t i = 0; i < NAMES; i++)
		deps[i] = (struct ktrt_dep){ &datum, 0, KTRT_IN };
	deps[NAMES / 2].mode = KTRT_INOUT;
	attr.deps = deps;
	attr.nr_deps = NAMES;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(
			ktrt_spawn_attr(write_it, (void *)(written + i), &attr),
			0);
	assert_int_equal(ktrt_wait(), 0);
}

static void order_all(void)
{
	static uint64_t random;

	if (!random)
		random = ktest_seed();
	ktest_random(&random);
	datum = 0;
	set(ran, 0);
	assert_int_equal(ktrt_run(make_all, &random), 0);
	assert_int_equal(get(ran), MANY);
	name_it_often();
	assert_int_equal(get(ran), MANY + 4);
	assert_int_equal(get(wrong), 0);
}

static void a_million_on_one_address(void **state)
{
	in_each_way(order_all);
}

KTEST_MAIN(KTEST(a_million_on_one_address))
