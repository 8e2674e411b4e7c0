/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task may name any number of data, also weakly, whoever makes it and whoever does it,
 * and the memory for that is used again.
 */
#include "support/runs.h"

#define MOST 260
#define TASKS (KTEST_TSAN || KTEST_ASAN ? 8 : 100)
#define MAKERS 3

static unsigned long values[MAKERS][MOST]; /* plain: dependences order them */
static unsigned wrong;

struct step {
	unsigned maker;
	unsigned long order, nr;
};

static int use_all(void *arg)
{
	const struct step *step = arg;

	for (unsigned long i = 0; i < step->nr; i++)
		if (values[step->maker][i]++ != step->order)
			more(wrong);
	return 0;
}

static int use_below(void *arg)
{
	const struct step *step = arg;
	struct ktrt_dep deps[MOST];
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	for (unsigned long i = 0; i < step->nr; i++)
		deps[i] = (struct ktrt_dep){ &values[step->maker][i], 0,
					     KTRT_INOUT };
	attr.deps = deps;
	attr.nr_deps = step->nr;
	attr.arg_bytes = sizeof(*step);
	return ktrt_spawn_attr(use_all, (void *)step, &attr);
}

static int spawn_step(struct step *step)
{
	bool weak = step->order % 16 == 3;
	struct ktrt_dep deps[MOST];
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	for (unsigned long i = 0; i < step->nr; i++)
		deps[i] = (struct ktrt_dep){ &values[step->maker][i], 0,
					     weak ? KTRT_WEAK_INOUT
						  : KTRT_INOUT };
	attr.deps = deps;
	attr.nr_deps = step->nr;
	attr.arg_bytes = sizeof(*step);
	return ktrt_spawn_attr(weak ? use_below : use_all, step, &attr);
}

/* So many that each size of memory is full, and one too many for it. */
static const unsigned long numbers[] = { 1,  8,	  9,   31,  32,	 63,
					 64, 127, 128, 255, 256, MOST };

static int make_steps(void *arg)
{
	struct step step = { (unsigned)(uintptr_t)arg, 0, 0 };
	int error = 0;

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(numbers) && !error; i++) {
		memset(values[step.maker], 0, sizeof(values[0]));
		step.nr = numbers[i];
		for (step.order = 0; step.order < TASKS && !error; step.order++)
			error = spawn_step(&step);
		if (!error)
			error = ktrt_wait();
	}
	return error;
}

static void make_all(void)
{
	struct ktrt_info first = KTRT_INFO_INIT, last = KTRT_INFO_INIT;

	for (int round = 0; round < 4; round++) {
		for (uintptr_t i = 0; i < MAKERS; i++)
			assert_int_equal(ktrt_spawn(make_steps, (void *)i), 0);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(ktrt_info_get(round ? &last : &first), 0);
	}
	assert_int_equal(get(wrong), 0);
	/* What others keep at hand besides. */
	assert_true(last.memory_bytes < first.memory_bytes + (8u << 20));
}

static void any_number_is_ordered(void **state)
{
	in_each_way(make_all);
}

KTEST_MAIN(KTEST(any_number_is_ordered))
