/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Nested random graphs with everything mixed, against a sequential model: reading,
 * writing, commuting and adding, by address and by range, with priorities, groups,
 * events, children and waits, undeferred and final; and others in which tasks fail, where just those
 * must run that the model lets run.  All of that on one CPU, too.
 */
#include "support/runs.h"

#include <sched.h>

#define DATA 10
#define DEPS 4
#define TASKS 400
#define LEVELS 2

struct graph;

struct datum {
	uint64_t value; /* plain: dependences alone must order it */
	int users; /* each 1, or 1000 of who has it alone */
	bool spoilt; /* by the model */
	uint64_t model;
	struct ktrt_reduction sum;
};

struct step {
	struct graph *graph;
	size_t nr;
	struct ktrt_dep deps[DEPS];
	struct datum *data[DEPS];
	uint64_t mark, expected[DEPS];
	bool known[DEPS]; /* the value is, and not only how it changes */
	bool fails, always, skipped;
	unsigned kind, below;
	unsigned ran;
};

struct graph {
	struct datum data[DATA];
	struct step steps[TASKS];
	uint64_t random;
	unsigned level, nr;
	bool with_failures, as_range;
};

static unsigned wrong;

static void add_copy(void *data, void *copy, void *arg)
{
	((struct datum *)data)->value += *(uint64_t *)copy;
}

static uint64_t derive_value(uint64_t old, uint64_t mark)
{
	return (old ^ mark) * 0x9e3779b97f4a7c15u + 1;
}

/* ---- what tasks do ---- */

/* Readers, and those of a reduction, are there together; who writes is alone. */
static int weigh_mode(unsigned mode)
{
	return mode == KTRT_IN || mode == KTRT_REDUCTION ? 1 : 1000;
}

static void enter_datum(const struct step *step, size_t i)
{
	unsigned mode = step->deps[i].mode;
	int users = __atomic_fetch_add(&step->data[i]->users, weigh_mode(mode),
				       __ATOMIC_SEQ_CST);

	if (weigh_mode(mode) > 1 ? users : users >= 1000)
		more(wrong);
}

static void change_datum(const struct step *step, size_t i)
{
	struct datum *datum = step->data[i];
	unsigned mode = step->deps[i].mode;
	uint64_t *copy;

	if (mode == KTRT_REDUCTION) {
		copy = ktrt_reduction_copy(&datum->sum);
		if (copy)
			*copy += step->mark;
		else
			more(wrong);
		return;
	}
	if (mode & KTRT_IN && step->known[i] &&
	    datum->value != step->expected[i])
		more(wrong);
	if (mode == KTRT_COMMUTATIVE)
		datum->value += step->mark;
	else if (mode & KTRT_OUT)
		datum->value = derive_value(mode & KTRT_IN ? datum->value : 0,
					    step->mark);
}

static int use_data(void *arg)
{
	const struct step *step = *(struct step **)arg;

	for (size_t i = 0; i < step->nr; i++)
		enter_datum(step, i);
	for (size_t i = 0; i < step->nr; i++)
		change_datum(step, i);
	for (size_t i = 0; i < step->nr; i++)
		__atomic_fetch_sub(&step->data[i]->users,
				   weigh_mode(step->deps[i].mode),
				   __ATOMIC_SEQ_CST);
	return 0;
}

static int do_event(void *arg)
{
	ktrt_events_done(*(struct ktrt_task **)arg, 1);
	return 0;
}

static int graph_below(void *arg);

/* In the body, or in a child that is waited for or not. */
static int do_accesses(struct step *step)
{
	struct ktrt_task *self = ktrt_self();
	int error = 0;

	switch (step->kind) {
	case 0:
		error = ktrt_events_add(1);
		if (!error)
			error = ktrt_spawn_copy(do_event, &self, sizeof(self));
		break;
	case 1:
		error = ktrt_spawn_copy(use_data, &step, sizeof(step));
		return error ? error : ktrt_wait();
	case 2:
		return ktrt_spawn_copy(use_data, &step, sizeof(step));
	case 3:
		error = ktrt_yield();
		break;
	case 4:
		if (step->below)
			error = ktrt_spawn_copy(graph_below, &step,
						sizeof(step));
		break;
	}
	use_data(&step);
	return error;
}

static int do_step(void *arg)
{
	struct step *step = *(struct step **)arg;
	int error;

	more(step->ran);
	if (!!ktrt_cancelled() != (step->always && step->skipped))
		more(wrong);
	error = do_accesses(step);
	return error ? error : step->fails ? 77 : 0;
}

/* ---- the model ---- */

static unsigned random_mode(struct graph *graph)
{
	static const unsigned modes[] = { KTRT_IN,	    KTRT_IN,
					  KTRT_OUT,	    KTRT_INOUT,
					  KTRT_COMMUTATIVE, KTRT_COMMUTATIVE,
					  KTRT_REDUCTION,   KTRT_REDUCTION };

	/* Of those that commute it is left to chance who sees a failure. */
	return modes[ktest_random_below(&graph->random,
					graph->with_failures ? 4 : 8)];
}

static bool named_already(const struct step *step, const struct datum *datum)
{
	for (size_t i = 0; i < step->nr; i++)
		if (step->data[i] == datum)
			return true;
	return false;
}

static void name_datum(struct graph *graph, struct step *step)
{
	struct datum *datum =
		&graph->data[ktest_random_below(&graph->random, DATA)];
	struct ktrt_dep *dep = &step->deps[step->nr];

	if (named_already(step, datum))
		return;
	dep->mode = random_mode(graph);
	dep->addr = dep->mode == KTRT_REDUCTION ? (void *)&datum->sum : datum;
	dep->len = graph->as_range && dep->mode != KTRT_REDUCTION
			   ? sizeof(uint64_t)
			   : 0;
	step->data[step->nr++] = datum;
}

static void make_step(struct graph *graph, struct step *step)
{
	size_t nr = ktest_random_below(&graph->random, DEPS + 1);

	memset(step, 0, sizeof(*step));
	step->graph = graph;
	step->mark = ktest_random(&graph->random);
	step->kind = (unsigned)ktest_random_below(&graph->random, 12);
	step->below = graph->level < LEVELS &&
		      !ktest_random_below(&graph->random, 20);
	while (nr--)
		name_datum(graph, step);
	step->fails =
		graph->with_failures && !ktest_random_below(&graph->random, 12);
	step->always = !ktest_random_below(&graph->random, 6);
}

static void follow_value(struct step *step, size_t i)
{
	struct datum *datum = step->data[i];
	unsigned mode = step->deps[i].mode;

	/* Of those that commute others may be there already. */
	step->known[i] = mode != KTRT_COMMUTATIVE;
	step->expected[i] = datum->model;
	if (mode == KTRT_COMMUTATIVE || mode == KTRT_REDUCTION)
		datum->model += step->mark;
	else if (mode & KTRT_OUT)
		datum->model = derive_value(mode & KTRT_IN ? datum->model : 0,
					    step->mark);
}

static void follow_step(struct step *step)
{
	bool runs;

	for (size_t i = 0; i < step->nr; i++)
		step->skipped |=
			step->deps[i].mode & KTRT_IN && step->data[i]->spoilt;
	runs = !step->skipped || step->always;
	for (size_t i = 0; i < step->nr; i++) {
		if (runs)
			follow_value(step, i);
		if (step->deps[i].mode & KTRT_OUT)
			step->data[i]->spoilt = !runs || step->fails;
	}
}

static bool any_fails(const struct graph *graph, unsigned from, unsigned to)
{
	for (; from < to; from++)
		if (graph->steps[from].fails && graph->steps[from].ran)
			return true;
	return false;
}

/* A wait tells what failed since the last one, and what was spoilt is not. */
static int wait_for_all(struct graph *graph, unsigned *told, unsigned nr)
{
	int code = ktrt_wait();

	if (code != (any_fails(graph, *told, nr) ? 77 : 0))
		return -EINVAL;
	*told = nr;
	for (unsigned i = 0; i < DATA; i++) {
		graph->data[i].spoilt = false;
		if (graph->data[i].value != graph->data[i].model)
			return -EINVAL;
	}
	return 0;
}

static int spawn_step(struct graph *graph, struct step *step,
		      struct ktrt_group *group)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = step->deps;
	attr.nr_deps = step->nr;
	attr.arg_bytes = sizeof(step);
	attr.flags = step->always ? KTRT_ALWAYS : 0;
	if (!ktest_random_below(&graph->random, 8))
		attr.flags |= KTRT_UNDEFERRED;
	if (!ktest_random_below(&graph->random, 16))
		attr.flags |= KTRT_FINAL;
	if (!ktest_random_below(&graph->random, 6))
		attr.priority = (int)ktest_random_below(&graph->random, 9) - 4;
	if (!graph->with_failures && !ktest_random_below(&graph->random, 4))
		attr.group = group;
	return ktrt_spawn_attr(do_step, &step, &attr);
}

static int spawn_steps(struct graph *graph, struct ktrt_group *group)
{
	unsigned told = 0;

	for (unsigned i = 0; i < graph->nr; i++) {
		struct step *step = &graph->steps[i];
		int error;

		make_step(graph, step);
		follow_step(step);
		error = spawn_step(graph, step, group);
		if (!error && !ktest_random_below(&graph->random, 60))
			error = wait_for_all(graph, &told, i + 1);
		if (error)
			return error;
	}
	return wait_for_all(graph, &told, graph->nr);
}

static int check_steps(const struct graph *graph)
{
	for (unsigned i = 0; i < graph->nr; i++) {
		const struct step *step = &graph->steps[i];

		if (step->ran != (!step->skipped || step->always))
			return -EINVAL;
	}
	return 0;
}

static int run_graph(uint64_t seed, unsigned level)
{
	struct graph *graph = calloc(1, sizeof(*graph));
	struct ktrt_group *group;
	int error = -ENOMEM;

	if (!graph)
		return -ENOMEM;
	graph->random = seed;
	graph->level = level;
	graph->with_failures = ktest_random_below(&graph->random, 2);
	graph->as_range = ktest_random_below(&graph->random, 2);
	graph->nr = level || KTEST_TSAN || KTEST_ASAN ? TASKS / 8 : TASKS;
	for (unsigned i = 0; i < DATA; i++)
		graph->data[i].sum =
			(struct ktrt_reduction){ sizeof(struct ktrt_reduction),
						 &graph->data[i],
						 sizeof(uint64_t),
						 NULL,
						 add_copy,
						 NULL };
	if (!ktrt_group_new(&group)) {
		error = spawn_steps(graph, group);
		ktrt_group_free(group);
	}
	if (!error)
		error = check_steps(graph);
	free(graph);
	return error;
}

static int graph_below(void *arg)
{
	const struct step *step = *(struct step **)arg;

	if (run_graph(step->mark, step->graph->level + 1))
		more(wrong);
	return 0;
}

static int graph_beside(void *arg)
{
	return run_graph((uint64_t)(uintptr_t)arg, 1);
}

static uint64_t seed;

/* Some at a time, so that workers have strangers' tasks besides. */
static void run_graphs(void)
{
	int nr = KTEST_TSAN || KTEST_ASAN ? 6 : 24;

	for (int i = 0; i < nr; i++)
		assert_int_equal(
			ktrt_spawn(graph_beside,
				   (void *)(uintptr_t)ktest_random(&seed)),
			0);
	assert_int_equal(ktrt_wait(), 0);
	for (int i = 0; i < nr / 4; i++)
		assert_int_equal(run_graph(ktest_random(&seed), 0), 0);
	assert_int_equal(get(wrong), 0);
}

static void mixes_run_in_order(void **state)
{
	seed = ktest_seed();
	in_each_way(run_graphs);
}

static int first_cpu(const cpu_set_t *cpus)
{
	int cpu = 0;

	while (!CPU_ISSET(cpu, cpus))
		cpu++;
	return cpu;
}

/* All threads, also the one that makes and waits. */
static void mixes_run_on_one_cpu(void **state)
{
	cpu_set_t before, one;

	seed = ktest_seed();
	CPU_ZERO(&one);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_SET(first_cpu(&before), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	for (size_t i = 0; i < NR_WAYS; i += 2) {
		start_way(&all_ways[i]);
		run_graphs();
		assert_int_equal(ktrt_stop(), 0);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

KTEST_MAIN(KTEST(mixes_run_in_order), KTEST(mixes_run_on_one_cpu))
