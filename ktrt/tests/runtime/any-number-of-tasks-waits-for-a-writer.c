/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Any number of tasks may follow a writer, made before it ends, while it does and after:
 * readers, commuting tasks and those that add.  None begins before the writer has ended,
 * and the next writer not before all of them have.
 */
#include "support/runs.h"

#define MOST 40
#define ROUNDS (KTEST_TSAN || KTEST_ASAN ? 3 : 40)
#define SPINS 2000

static unsigned long datum, sum; /* plain: dependences order them */
static unsigned readers, wrong;

static void spin_for(unsigned long times)
{
	while (times--)
		__asm__ volatile("" ::: "memory");
}

/* @arg: for how long.  All that came after the writer before have ended. */
static int write_it(void *arg)
{
	spin_for((uintptr_t)arg);
	datum++;
	set(readers, 0);
	sum = 0;
	return 0;
}

/* @arg: how many have written. */
static int read_it(void *arg)
{
	if (datum != (uintptr_t)arg)
		more(wrong);
	more(readers);
	return 0;
}

static int change_it(void *arg)
{
	sum++;
	return read_it(arg);
}

static void add_long(void *into, void *from, void *arg)
{
	*(unsigned long *)into += *(const unsigned long *)from;
}

static struct ktrt_reduction adding = {
	.struct_size = sizeof(adding),
	.data = &sum,
	.bytes = sizeof(sum),
	.combine = add_long,
};

static int add_to_it(void *arg)
{
	unsigned long *copy = ktrt_reduction_copy(&adding);

	if (!copy)
		return -ENOMEM;
	++*copy;
	return read_it(arg);
}

/* @arg: how many there were. */
static int check_it(void *arg)
{
	if (get(readers) != (uintptr_t)arg)
		more(wrong);
	return 0;
}

static int check_sum(void *arg)
{
	if (sum != (uintptr_t)arg)
		more(wrong);
	return check_it(arg);
}

static const struct {
	unsigned mode;
	ktrt_func follow, check;
} kinds[] = {
	{ KTRT_IN, read_it, check_it },
	{ KTRT_COMMUTATIVE, change_it, check_sum },
	{ KTRT_REDUCTION, add_to_it, check_sum },
};

static int spawn_for(ktrt_func func, uintptr_t arg, unsigned mode)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &sum, 0, mode };

	if (mode == KTRT_REDUCTION)
		dep.addr = &adding;
	attr.deps = &dep;
	attr.nr_deps = 1;
	return ktrt_spawn_attr(func, (void *)arg, &attr);
}

static int make_all(void *arg)
{
	uint64_t *random = arg;
	int error = 0;

	datum = 0;
	for (uintptr_t i = 0; i < ROUNDS * MOST && !error; i++) {
		size_t kind = i % KTEST_ARRAY_SIZE(kinds);
		uintptr_t nr = ktest_random_below(random, MOST + 1);

		error = spawn_for(write_it, ktest_random_below(random, SPINS),
				  KTRT_OUT);
		for (uintptr_t j = 0; j < nr && !error; j++)
			error = spawn_for(kinds[kind].follow, i + 1,
					  kinds[kind].mode);
		if (!error)
			error = spawn_for(kinds[kind].check, nr, KTRT_INOUT);
	}
	return error ? error : ktrt_wait();
}

static void order_all(void)
{
	static uint64_t random;

	if (!random)
		random = ktest_seed();
	ktest_random(&random);
	assert_int_equal(ktrt_run(make_all, &random), 0);
	assert_int_equal(get(wrong), 0);
}

static void all_follow_their_writer(void **state)
{
	in_each_way(order_all);
}

KTEST_MAIN(KTEST(all_follow_their_writer))
