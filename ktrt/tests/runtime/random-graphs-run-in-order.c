/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Random graphs of tasks, against a sequential model.  Each datum carries a
 * number that every writer derives from the old one and its own, and readers
 * must find what the model says; nobody may write while others use it.
 */
#include "support/runs.h"

#define DATA 24
#define DEPS 6
#define TASKS 1500

static struct datum {
	uint64_t value; /* plain: dependences alone must order it */
	int users; /* readers; -1: a writer */
} data[DATA];

static uint64_t model[DATA];

struct step {
	size_t nr;
	struct ktrt_dep deps[DEPS];
	uint64_t expected[DEPS];
	uint64_t mark;
	unsigned events, pause, nested;
};

static unsigned wrong;

static struct datum *datum_of(const struct ktrt_dep *dep)
{
	return (struct datum *)dep->addr;
}

static void enter_datum(const struct ktrt_dep *dep)
{
	int users = __atomic_fetch_add(&datum_of(dep)->users,
				       dep->mode & KTRT_OUT ? -1000 : 1,
				       __ATOMIC_SEQ_CST);

	if (dep->mode & KTRT_OUT ? users != 0 : users < 0)
		more(wrong);
}

static void leave_datum(const struct ktrt_dep *dep)
{
	__atomic_fetch_add(&datum_of(dep)->users,
			   dep->mode & KTRT_OUT ? 1000 : -1, __ATOMIC_SEQ_CST);
}

static uint64_t derive_value(uint64_t old, uint64_t mark)
{
	return (old ^ mark) * 0x9e3779b97f4a7c15u + 1;
}

static void use_data(const struct step *step)
{
	for (size_t i = 0; i < step->nr; i++)
		enter_datum(&step->deps[i]);
	for (unsigned i = 0; i < step->pause; i++)
		__asm__ volatile("" ::: "memory");
	for (size_t i = 0; i < step->nr; i++) {
		struct datum *datum = datum_of(&step->deps[i]);

		if (datum->value != step->expected[i])
			more(wrong);
		if (step->deps[i].mode & KTRT_OUT)
			datum->value = derive_value(datum->value, step->mark);
	}
	for (size_t i = 0; i < step->nr; i++)
		leave_datum(&step->deps[i]);
}

static int use_nested(void *arg)
{
	use_data(*(const struct step **)arg);
	return 0;
}

static int do_event(void *arg)
{
	ktrt_events_done(*(struct ktrt_task **)arg, 1);
	return 0;
}

/* Works in its body, or in a child that is not waited for. */
static int do_step(void *arg)
{
	const struct step *step = arg;
	struct ktrt_task *self = ktrt_self();
	int error = 0;

	if (step->events)
		error = ktrt_events_add(step->events);
	for (unsigned i = 0; i < step->events && !error; i++)
		error = ktrt_spawn_copy(do_event, &self, sizeof(self));
	if (step->pause % 7 == 0 && !error)
		error = ktrt_yield();
	if (error)
		return error;
	if (!step->nested) {
		use_data(step);
		return 0;
	}
	error = ktrt_spawn_copy(use_nested, &step, sizeof(step));
	return step->nested > 1 && !error ? ktrt_wait() : error;
}

static bool named_already(const struct step *step, const void *addr)
{
	for (size_t i = 0; i < step->nr; i++)
		if (step->deps[i].addr == addr)
			return true;
	return false;
}

static void make_step(struct step *step, uint64_t *random)
{
	size_t nr = ktest_random_below(random, DEPS + 1);

	memset(step, 0, sizeof(*step));
	step->mark = ktest_random(random);
	for (size_t i = 0; i < nr; i++) {
		size_t at = ktest_random_below(random, DATA);
		struct ktrt_dep *dep = &step->deps[step->nr];

		if (named_already(step, &data[at]))
			continue;
		dep->addr = &data[at];
		dep->mode = 1 + (unsigned)ktest_random_below(random, 3);
		step->expected[step->nr++] = model[at];
		if (dep->mode & KTRT_OUT)
			model[at] = derive_value(model[at], step->mark);
	}
	step->events = !ktest_random_below(random, 8)
			       ? 1 + (unsigned)ktest_random_below(random, 3)
			       : 0;
	step->nested = (unsigned)ktest_random_below(random, 4);
	step->pause = (unsigned)ktest_random_below(random, 2000);
}

/* As if the caller had not noticed: the same datum more than once. */
static size_t name_twice(struct ktrt_dep *deps, const struct step *step,
			 uint64_t *random)
{
	size_t nr = step->nr;

	memcpy(deps, step->deps, nr * sizeof(*deps));
	if (nr && !ktest_random_below(random, 4)) {
		deps[nr] = step->deps[ktest_random_below(random, nr)];
		deps[nr++].mode = KTRT_IN;
	}
	return nr;
}

static struct step steps[TASKS];

/* @as_range: data named as bytes instead of addresses. */
static int make_graph(uint64_t *random, bool as_range, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		struct ktrt_attr attr = KTRT_ATTR_INIT;
		struct ktrt_dep deps[DEPS + 1];
		int error;

		make_step(&steps[i], random);
		attr.nr_deps = name_twice(deps, &steps[i], random);
		for (size_t j = 0; as_range && j < attr.nr_deps; j++)
			deps[j].len = sizeof(struct datum);
		attr.deps = deps;
		if (!ktest_random_below(random, 6))
			attr.priority = (int)ktest_random_below(random, 9) - 4;
		error = ktrt_spawn_attr(do_step, &steps[i], &attr);
		if (error)
			return error;
		if (!ktest_random_below(random, 300) && ktrt_wait())
			return -EIO;
	}
	return 0;
}

static void run_graphs(bool as_range)
{
	static uint64_t random;
	unsigned nr = KTEST_TSAN || KTEST_ASAN ? TASKS / 3 : TASKS;

	if (!random)
		random = ktest_seed();
	for (int round = 0; round < 6; round++) {
		assert_int_equal(make_graph(&random, as_range, nr), 0);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(get(wrong), 0);
		for (size_t i = 0; i < DATA; i++)
			assert_int_equal(data[i].value, model[i]);
	}
}

static void by_address(void)
{
	run_graphs(false);
}

static void by_range(void)
{
	run_graphs(true);
}

static void addresses_order_tasks(void **state)
{
	in_each_way(by_address);
}

static void ranges_order_tasks(void **state)
{
	in_each_way(by_range);
}

KTEST_MAIN(KTEST(addresses_order_tasks), KTEST(ranges_order_tasks))
