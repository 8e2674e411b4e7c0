/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks that name data as KTRT_COMMUTATIVE run in any order, one at a time for
 * each datum; what comes before and after is ordered.
 */
#include "support/runs.h"

#define DATA 6

static struct datum {
	unsigned long value; /* plain: turns alone must order it */
	int users;
} data[DATA];

static int gate;
static unsigned wrong, ran;

struct use {
	unsigned nr, which[DATA];
	bool child;
};

static int add_to_all(void *arg)
{
	const struct use *use = arg;

	for (unsigned i = 0; i < use->nr; i++) {
		struct datum *datum = &data[use->which[i]];

		if (__atomic_fetch_add(&datum->users, 1, __ATOMIC_SEQ_CST))
			more(wrong);
	}
	for (volatile int i = 0; i < 200; i++)
		;
	for (unsigned i = 0; i < use->nr; i++) {
		struct datum *datum = &data[use->which[i]];

		datum->value++;
		__atomic_fetch_sub(&datum->users, 1, __ATOMIC_SEQ_CST);
	}
	more(ran);
	return 0;
}

/* The turn is over when its children are. */
static int add_or_let_add(void *arg)
{
	const struct use *use = arg;

	if (!use->child)
		return add_to_all(arg);
	return ktrt_spawn_copy(add_to_all, use, sizeof(*use));
}

static int spawn_use(const struct use *use, unsigned mode, size_t len)
{
	struct ktrt_dep deps[DATA];
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	for (unsigned i = 0; i < use->nr; i++)
		deps[i] = (struct ktrt_dep){ &data[use->which[i]], len, mode };
	attr.deps = deps;
	attr.nr_deps = use->nr;
	attr.arg_bytes = sizeof(*use);
	return ktrt_spawn_attr(add_or_let_add, (void *)use, &attr);
}

/* Several data in any order of naming, so that two may want what the other has. */
static struct use random_use(uint64_t *random)
{
	unsigned start = (unsigned)ktest_random_below(random, DATA);
	unsigned step = ktest_random_below(random, 2) ? 1 : DATA - 1;
	struct use use = { 0 };

	use.nr = 1 + (unsigned)ktest_random_below(random, 3);
	for (unsigned i = 0; i < use.nr; i++)
		use.which[i] = (start + i * step) % DATA;
	use.child = !ktest_random_below(random, 4);
	return use;
}

static uint64_t seed;

static int use_data(void *arg)
{
	static const unsigned modes[] = { KTRT_COMMUTATIVE, KTRT_COMMUTATIVE,
					  KTRT_COMMUTATIVE, KTRT_INOUT };
	size_t len = arg ? sizeof(struct datum) : 0;
	unsigned long expected[DATA] = { 0 };
	unsigned nr = KTEST_TSAN || KTEST_ASAN ? 500 : 3000;

	memset(data, 0, sizeof(data));
	set(ran, 0);
	for (unsigned i = 0; i < nr; i++) {
		struct use use = random_use(&seed);
		unsigned mode = modes[ktest_random_below(&seed, 4)];

		for (unsigned j = 0; j < use.nr; j++)
			expected[use.which[j]]++;
		if (spawn_use(&use, mode, len))
			return -EIO;
	}
	if (ktrt_wait() || get(ran) != nr || get(wrong))
		return -EINVAL;
	for (unsigned i = 0; i < DATA; i++)
		if (data[i].value != expected[i])
			return -EINVAL;
	return 0;
}

static void turns_are_taken(void)
{
	assert_int_equal(use_data(NULL), 0);
	assert_int_equal(ktrt_run(use_data, NULL), 0);
	assert_int_equal(ktrt_run(use_data, data), 0);
}

/* ---- any order ---- */

static int open_gate(void *arg)
{
	ktrt_events_done(*(struct ktrt_task **)arg, 1);
	return 0;
}

static struct ktrt_task *waits;

static int wait_for_event(void *arg)
{
	int error = ktrt_events_add(1);

	set(waits, ktrt_self());
	return error;
}

/* The first cannot begin before the second was done. */
static void order_is_any(void)
{
	const struct ktrt_dep writes = { &gate, 0, KTRT_OUT };
	const struct ktrt_dep first[] = { { &gate, 0, KTRT_IN },
					  { data, 0, KTRT_COMMUTATIVE } };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct use one = { 1, { 0 }, false };
	struct ktrt_task *task;

	set(waits, NULL);
	set(ran, 0);
	attr.deps = &writes;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_spawn_attr(wait_for_event, NULL, &attr), 0);
	assert_true(holds_soon(get(waits)));
	task = get(waits);
	attr.deps = first;
	attr.nr_deps = 2;
	attr.arg_bytes = sizeof(one);
	assert_int_equal(ktrt_spawn_attr(add_or_let_add, &one, &attr), 0);
	attr.deps = first + 1;
	attr.nr_deps = 1;
	attr.arg_bytes = sizeof(task);
	assert_int_equal(ktrt_spawn_attr(open_gate, &task, &attr), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(ran), 1);
}

/* ---- failures ---- */

static int fail_now(void *arg)
{
	return 21;
}

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static void failures_are_seen(void)
{
	struct ktrt_dep dep = { data, 0, KTRT_COMMUTATIVE };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	set(ran, 0);
	attr.deps = &dep;
	attr.nr_deps = 1;
	for (int i = 0; i < 50; i++)
		assert_int_equal(ktrt_spawn_attr(fail_now, NULL, &attr), 0);
	dep.mode = KTRT_IN;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
	assert_int_equal(ktrt_wait(), 21);
	assert_int_equal(get(ran), 0);
	dep.mode = KTRT_COMMUTATIVE;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
	assert_int_equal(ktrt_wait_for(&dep, 1), 0);
	assert_int_equal(get(ran), 1);
	assert_int_equal(ktrt_wait(), 0);
}

/* When those before may begin, others come, and some have failed already. */
static void failures_meet_who_comes(void)
{
	struct ktrt_dep dep = { data, 0, KTRT_COMMUTATIVE };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	for (int i = 0; i < 100; i++) {
		dep.mode = KTRT_OUT;
		assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
		dep.mode = KTRT_COMMUTATIVE;
		for (int j = 0; j < 8; j++)
			assert_int_equal(ktrt_spawn_attr(fail_now, NULL, &attr),
					 0);
		assert_int_equal(ktrt_wait(), 21);
	}
}

/* Nodes have one order, which is as good. */
static void graphs_have_them(void)
{
	struct ktrt_dep dep = { data, 0, KTRT_COMMUTATIVE };
	struct use one = { 1, { 0 }, false };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_graph *graph;

	set(ran, 0);
	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_graph_new(&graph), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(ktrt_graph_add(graph, add_to_all, &one, &attr),
				 i);
	assert_int_equal(ktrt_graph_run(graph), 0);
	assert_int_equal(get(ran), 10);
	assert_int_equal(get(wrong), 0);
	ktrt_graph_free(graph);
}

static void all_of_it(void)
{
	turns_are_taken();
	order_is_any();
	failures_are_seen();
	failures_meet_who_comes();
	graphs_have_them();
}

static void commuting_tasks_take_turns(void **state)
{
	seed = ktest_seed();
	in_each_way(all_of_it);
}

KTEST_MAIN(KTEST(commuting_tasks_take_turns))
