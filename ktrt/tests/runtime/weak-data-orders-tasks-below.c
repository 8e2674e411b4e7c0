/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Random nested graphs, against a sequential model.  Tasks name data weakly or not, make
 * children that use a part of it, wait for all or for some data, release data before
 * their end, and commute, add, are undeferred or final at random.  Each use must find the
 * value that the sequential program would find there, and nobody may write while others
 * use a datum.
 */
#include "support/runs.h"

#include <stdlib.h>

#define DATA 8
#define DEPS 4
#define LEVELS 4
#define CHILDREN 5
#define STEPS 60
#define ACTIONS (STEPS * 6)
#define TOUCHES (STEPS * DATA * 4)

struct datum {
	uint64_t value; /* plain: dependences alone must order it */
	int users; /* each 1, or 1000 of who has it alone */
	struct ktrt_reduction sum;
};

/* One use of one datum. */
struct touch {
	unsigned datum, mode;
	uint64_t expected, mark;
};

enum kind { USE, SPAWN, WAIT, WAIT_FOR, RELEASE, EVENT };

struct action {
	enum kind kind;
	unsigned first, nr; /* touches */
	struct step *child;
	struct ktrt_dep dep;
	struct action *next;
};

/* Data that a task names, all in one dependence. */
struct name {
	unsigned first, nr, mode;
	bool weak;
};

struct step {
	struct graph *graph;
	struct name names[DEPS];
	unsigned nr_names;
	bool undeferred, final, early, twice, weak_first, in_group;
	int priority;
	struct action *actions, **end;
	unsigned ran;
};

struct graph {
	struct datum data[DATA];
	uint64_t model[DATA], random;
	struct step steps[STEPS];
	struct action actions[ACTIONS];
	struct touch touches[TOUCHES];
	unsigned nr_steps, nr_actions, nr_touches;
	bool as_range;
	struct ktrt_group *group;
};

static unsigned wrong;

static uint64_t derive(uint64_t old, uint64_t mark)
{
	return (old ^ mark) * 0x9e3779b97f4a7c15u + 1;
}

static void add(void *data, void *copy, void *arg)
{
	((struct datum *)data)->value += *(uint64_t *)copy;
}

/* ---- what tasks do ---- */

static int weight(unsigned mode)
{
	return mode == KTRT_IN || mode == KTRT_REDUCTION ? 1 : 1000;
}

static void change(struct datum *datum, const struct touch *touch)
{
	if (touch->mode == KTRT_REDUCTION) {
		uint64_t *copy = ktrt_reduction_copy(&datum->sum);

		if (copy)
			*copy += touch->mark;
		else
			more(wrong);
		return;
	}
	if (touch->mode == KTRT_COMMUTATIVE) {
		datum->value += touch->mark;
		return;
	}
	if (touch->mode & KTRT_IN && datum->value != touch->expected)
		more(wrong);
	if (touch->mode & KTRT_OUT)
		datum->value = derive(touch->mode & KTRT_IN ? datum->value : 0,
				      touch->mark);
}

static void use(struct graph *graph, const struct action *action)
{
	for (unsigned i = 0; i < action->nr; i++) {
		const struct touch *touch = &graph->touches[action->first + i];
		struct datum *datum = &graph->data[touch->datum];
		int mine = weight(touch->mode);
		int users = __atomic_fetch_add(&datum->users, mine,
					       __ATOMIC_SEQ_CST);

		if (mine > 1 ? users : users >= 1000)
			more(wrong);
		change(datum, touch);
		__atomic_fetch_sub(&datum->users, mine, __ATOMIC_SEQ_CST);
	}
}

static struct ktrt_dep dep_of(struct graph *graph, const struct name *name)
{
	struct datum *datum = &graph->data[name->first];
	struct ktrt_dep dep = { datum, 0, name->mode };

	if (name->mode == KTRT_REDUCTION)
		dep.addr = &datum->sum;
	else if (graph->as_range)
		dep.len = name->nr * sizeof(*datum);
	if (name->weak)
		dep.mode |= KTRT_WEAK;
	return dep;
}

static int do_step(void *arg);

static int spawn_step(struct step *step)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep deps[DEPS + 2];
	struct ktrt_dep *own = deps + 1;
	unsigned nr = step->nr_names;
	bool twice;

	for (unsigned i = 0; i < nr; i++)
		own[i] = dep_of(step->graph, &step->names[i]);
	twice = step->twice && nr && own[0].mode != KTRT_REDUCTION;
	attr.deps = own;
	attr.nr_deps = nr + twice;
	if (twice) {
		struct ktrt_dep *again = step->weak_first ? deps : &own[nr];

		*again = own[0];
		again->mode = KTRT_WEAK_IN;
		attr.deps = step->weak_first ? deps : own;
	}
	attr.arg_bytes = sizeof(step);
	attr.priority = step->priority;
	attr.group = step->in_group ? step->graph->group : NULL;
	attr.flags = (step->undeferred ? KTRT_UNDEFERRED : 0) |
		     (step->final ? KTRT_FINAL : 0) |
		     (step->early ? KTRT_EARLY_RELEASE : 0);
	return ktrt_spawn_attr(do_step, &step, &attr);
}

static int do_event(void *arg)
{
	ktrt_events_done(*(struct ktrt_task **)arg, 1);
	return 0;
}

static int add_event(void)
{
	struct ktrt_task *self = ktrt_self();
	int error = ktrt_events_add(1);

	return error ? error : ktrt_spawn_copy(do_event, &self, sizeof(self));
}

static int act(struct graph *graph, const struct action *action)
{
	int error = 0;

	switch (action->kind) {
	case USE:
		use(graph, action);
		return 0;
	case SPAWN:
		return spawn_step(action->child);
	case WAIT:
		return ktrt_wait();
	case WAIT_FOR:
		error = ktrt_wait_for(&action->dep, 1);
		use(graph, action);
		return error;
	case RELEASE:
		return ktrt_release(&action->dep, 1);
	case EVENT:
		return add_event();
	}
	return error;
}

static int act_all(struct step *step)
{
	int error = 0;

	more(step->ran);
	for (struct action *action = step->actions; action && !error;
	     action = action->next) {
		error = act(step->graph, action);
		if (error)
			fprintf(stderr, "# action %d: %d\n", action->kind,
				error);
	}
	return error;
}

static int do_step(void *arg)
{
	return act_all(*(struct step **)arg);
}

/* ---- the sequential program, and what it finds ---- */

static unsigned below(struct graph *graph, unsigned nr)
{
	return (unsigned)ktest_random_below(&graph->random, nr);
}

static struct action *add_action(struct step *step, enum kind kind)
{
	struct graph *graph = step->graph;
	struct action *action;

	if (graph->nr_actions == ACTIONS)
		return NULL;
	action = &graph->actions[graph->nr_actions++];
	action->kind = kind;
	action->first = graph->nr_touches;
	*step->end = action;
	step->end = &action->next;
	return action;
}

static void add_touch(struct graph *graph, struct action *action,
		      unsigned datum, unsigned mode)
{
	struct touch *touch = &graph->touches[graph->nr_touches];
	uint64_t *model = &graph->model[datum];

	if (graph->nr_touches == TOUCHES)
		return;
	graph->nr_touches++;
	action->nr++;
	*touch = (struct touch){ datum, mode, *model,
				 ktest_random(&graph->random) };
	if (mode == KTRT_COMMUTATIVE || mode == KTRT_REDUCTION)
		*model += touch->mark;
	else if (mode & KTRT_OUT)
		*model = derive(mode & KTRT_IN ? *model : 0, touch->mark);
}

static void touch_name(struct graph *graph, struct action *action,
		       const struct name *name, unsigned mode)
{
	for (unsigned i = 0; i < name->nr; i++)
		add_touch(graph, action, name->first + i, mode);
}

/* @again: the children that were made are complete. */
static void use_own(struct step *step, bool again)
{
	struct action *action = add_action(step, USE);

	for (unsigned i = 0; action && i < step->nr_names; i++) {
		const struct name *name = &step->names[i];

		if (!name->weak && (!again || name->mode <= KTRT_INOUT) &&
		    name->nr)
			touch_name(step->graph, action, name, name->mode);
	}
}

static unsigned mode_below(struct graph *graph, unsigned mode)
{
	static const unsigned modes[] = { KTRT_IN,    KTRT_OUT,
					  KTRT_INOUT, KTRT_COMMUTATIVE,
					  KTRT_INOUT, KTRT_REDUCTION };

	return mode & KTRT_OUT && mode <= KTRT_INOUT
		       ? modes[below(graph, KTEST_ARRAY_SIZE(modes))]
		       : mode;
}

static bool named_already(const struct step *step, const struct name *name)
{
	for (unsigned i = 0; i < step->nr_names; i++)
		if (step->names[i].first < name->first + name->nr &&
		    name->first < step->names[i].first + step->names[i].nr)
			return true;
	return false;
}

/* A part of what the parent names. */
static void name_data(struct step *step, const struct step *parent)
{
	struct graph *graph = step->graph;
	const struct name *from =
		&parent->names[below(graph, parent->nr_names)];
	struct name *name = &step->names[step->nr_names];

	/* Released, or only added to. */
	if (!from->nr || from->mode == KTRT_REDUCTION)
		return;
	name->mode = mode_below(graph, from->mode);
	name->first = from->first + below(graph, from->nr);
	name->nr = 1;
	if (graph->as_range && name->mode != KTRT_REDUCTION)
		name->nr += below(graph, from->first + from->nr - name->first);
	name->weak = name->mode <= KTRT_INOUT && below(graph, 2);
	if (!named_already(step, name))
		step->nr_names++;
}

static void release_name(struct step *step)
{
	struct name *name = &step->names[below(step->graph, step->nr_names)];
	struct action *action;

	if (!name->nr || name->mode > KTRT_INOUT ||
	    !(name->weak || step->early))
		return;
	action = add_action(step, RELEASE);
	if (!action)
		return;
	action->dep = dep_of(step->graph, name);
	name->nr = 0;
}

static void wait_for_name(struct step *step)
{
	struct graph *graph = step->graph;
	struct name name = step->names[below(graph, step->nr_names)];
	struct action *action;

	if (!name.nr || name.mode > KTRT_INOUT)
		return;
	action = add_action(step, WAIT_FOR);
	if (!action)
		return;
	name.weak = false;
	action->dep = dep_of(graph, &name);
	touch_name(graph, action, &name, name.mode);
}

static struct step *make_step(struct graph *graph, const struct step *parent,
			      unsigned level);

static void make_child(struct step *step, unsigned level)
{
	struct step *child;
	struct action *action = add_action(step, SPAWN);

	if (!action)
		return;
	child = make_step(step->graph, step, level + 1);
	if (child)
		action->child = child;
	else
		action->kind = WAIT;
}

static void make_body(struct step *step, unsigned level)
{
	struct graph *graph = step->graph;
	unsigned children = level < LEVELS ? below(graph, CHILDREN + 1) : 0;

	if (level && !below(graph, 10))
		add_action(step, EVENT);
	if (level)
		use_own(step, false);
	while (children--) {
		make_child(step, level);
		if (!step->nr_names)
			continue;
		if (!below(graph, 8))
			wait_for_name(step);
		if (level && !below(graph, 6))
			release_name(step);
	}
	if (!below(graph, 5) && add_action(step, WAIT) && level)
		use_own(step, true);
}

static struct step *new_step(struct graph *graph)
{
	struct step *step;

	if (graph->nr_steps == STEPS)
		return NULL;
	step = &graph->steps[graph->nr_steps++];
	step->graph = graph;
	step->end = &step->actions;
	return step;
}

static struct step *make_step(struct graph *graph, const struct step *parent,
			      unsigned level)
{
	unsigned nr = below(graph, DEPS + 1);
	struct step *step = new_step(graph);
	struct name names[DEPS];

	if (!step)
		return NULL;
	while (nr-- && parent->nr_names)
		name_data(step, parent);
	step->undeferred = !below(graph, 12);
	step->final = !below(graph, 12);
	step->early = below(graph, 2);
	step->twice = !below(graph, 4);
	step->weak_first = below(graph, 2);
	step->in_group = !below(graph, 4);
	if (!below(graph, 6))
		step->priority = (int)below(graph, 9) - 4;
	/* What is released is so for the body that is made. */
	memcpy(names, step->names, sizeof(names));
	make_body(step, level);
	memcpy(step->names, names, sizeof(names));
	return step;
}

/* All data are its own. */
static struct step *make_root(struct graph *graph)
{
	struct step *root = new_step(graph);
	unsigned each = graph->as_range ? DATA / 2 : 1;

	for (unsigned i = 0; i < DEPS && i * each < DATA; i++)
		root->names[root->nr_names++] =
			(struct name){ i * each, each, KTRT_INOUT, false };
	for (int i = 0; i < 5; i++)
		make_body(root, 0);
	return root;
}

/* ---- running ---- */

/* No task uses the graph any more; the first code. */
static int do_graph(struct graph *graph, struct step *root)
{
	int first = act_all(root);
	int of_group = ktrt_group_wait(graph->group);
	int of_all = ktrt_wait();

	ktrt_group_free(graph->group);
	return first ? first : of_group ? of_group : of_all;
}

static int run_graph(uint64_t seed)
{
	struct graph *graph = calloc(1, sizeof(*graph));
	struct step *root;
	int error = -ENOMEM;

	if (!graph)
		return -ENOMEM;
	graph->random = seed;
	graph->as_range = below(graph, 2);
	for (unsigned i = 0; i < DATA; i++)
		graph->data[i].sum =
			(struct ktrt_reduction){ sizeof(struct ktrt_reduction),
						 &graph->data[i],
						 sizeof(uint64_t),
						 NULL,
						 add,
						 NULL };
	root = make_root(graph);
	if (!ktrt_group_new(&graph->group))
		error = do_graph(graph, root);
	for (unsigned i = 0; i < graph->nr_steps; i++)
		if (graph->steps[i].ran != 1)
			more(wrong);
	for (unsigned i = 0; i < DATA; i++)
		if (graph->data[i].value != graph->model[i])
			more(wrong);
	free(graph);
	if (error || get(wrong))
		fprintf(stderr, "# graph %llu: %d, %u wrong\n",
			(unsigned long long)seed, error, get(wrong));
	return error || get(wrong) ? -EIO : 0;
}

static int graph_beside(void *arg)
{
	return run_graph((uint64_t)(uintptr_t)arg);
}

static uint64_t seed;

static unsigned nr_graphs(void)
{
	const char *wanted = getenv("KTRT_TEST_GRAPHS");

	if (wanted)
		return (unsigned)atoi(wanted);
	return KTEST_TSAN || KTEST_ASAN ? 16 : 160;
}

/* Each alone, by a thread that is attached; then by tasks, some at a time. */
static void graphs(void)
{
	unsigned nr = nr_graphs();

	for (unsigned i = 0; i < nr / 2; i++)
		assert_int_equal(run_graph(ktest_random(&seed)), 0);
	for (unsigned i = 0; i < nr / 2; i++)
		assert_int_equal(
			ktrt_spawn(graph_beside,
				   (void *)(uintptr_t)ktest_random(&seed)),
			0);
	assert_int_equal(ktrt_wait(), 0);
}

static void sequential_values_are_found(void **state)
{
	seed = ktest_seed();
	in_each_way(graphs);
}

/* So few that tasks which wait for what they name weakly have them all. */
static void few_threads_suffice(void **state)
{
	seed = ktest_seed();
	for (unsigned threads = 1; threads <= 4; threads++) {
		struct ktrt_options options = KTRT_OPTIONS_INIT;

		options.workers = threads > 2 ? 2 : threads;
		options.max_threads = threads;
		options.flags = KTRT_NO_UMT;
		assert_int_equal(ktrt_start(&options), 0);
		graphs();
		assert_int_equal(ktrt_stop(), 0);
	}
}

KTEST_MAIN(KTEST(sequential_values_are_found), KTEST(few_threads_suffice))
