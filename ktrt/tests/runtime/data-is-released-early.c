/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Data that a task names weakly, or with KTRT_EARLY_RELEASE: who waits for it, when it is
 * released, what children may do with it, and what groups and limits do.
 */
#include "support/weak_data.h"

/* ---- who waits ---- */

static void weak_tasks_begin_at_once(void)
{
	struct ktrt_dep deps[] = { { &datum_a, 0, KTRT_WEAK_INOUT },
				   { &datum_b, 0, KTRT_WEAK_OUT } };

	begin_case();
	assert_int_equal(spawn_on(hold_data, NULL, &datum_a, KTRT_OUT), 0);
	assert_int_equal(spawn_with(note_and_use, NULL, deps, 2, 0), 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[2], &datum_a, KTRT_IN), 0);
	wait_for_data(&datum_b);
	assert_int_equal(get(nr_ran[0]), 1);
	assert_int_equal(get(nr_ran[1]) + get(nr_ran[2]), 0);
	release_holder();
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_ran[1], 1);
	assert_int_equal(nr_ran[2], 1);
}

/* One child is not complete before what comes after the task has run. */
static int hold_b_use_a(void *arg)
{
	int error = spawn_on(hold_data, NULL, &datum_b, KTRT_INOUT);

	return error ? error
		     : spawn_on(note_run, &nr_ran[1], &datum_a, KTRT_INOUT);
}

static void others_need_not_wait_for_all(unsigned mode, unsigned flags)
{
	struct ktrt_dep deps[] = { { &datum_a, 0, mode },
				   { &datum_b, 0, mode } };

	begin_case();
	assert_int_equal(spawn_with(hold_b_use_a, NULL, deps, 2, flags), 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[2], &datum_a, KTRT_IN), 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[3], &datum_b, KTRT_IN), 0);
	wait_for_data(&datum_a);
	assert_int_equal(get(nr_ran[2]), 1);
	assert_int_equal(get(nr_ran[1]), 1);
	assert_int_equal(get(nr_ran[3]), 0);
	assert_int_equal(ktrt_wait_for(deps, 0), 0);
	release_holder();
	wait_for_data(&datum_b);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_ran[3], 1);
}

static void released_as_children_end(void)
{
	others_need_not_wait_for_all(KTRT_WEAK_INOUT, 0);
	others_need_not_wait_for_all(KTRT_WEAK_OUT, KTRT_EARLY_RELEASE);
	others_need_not_wait_for_all(KTRT_INOUT, KTRT_EARLY_RELEASE);
	others_need_not_wait_for_all(KTRT_OUT, KTRT_EARLY_RELEASE);
}

static int release_and_stay(void *arg)
{
	struct ktrt_dep dep = { &datum_a, 0, KTRT_IN };
	int error = spawn_on(note_run, &nr_ran[1], &datum_a, KTRT_INOUT);

	if (!error)
		error = ktrt_release(&dep, 1);
	while (!error && !get(nr_ran[2]))
		error = ktrt_yield();
	return error;
}

static void released_in_the_body(void)
{
	struct ktrt_dep dep = { &datum_a, 0, KTRT_INOUT };

	begin_case();
	assert_int_equal(
		spawn_with(release_and_stay, NULL, &dep, 1, KTRT_EARLY_RELEASE),
		0);
	assert_int_equal(spawn_on(note_run, &nr_ran[2], &datum_a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(
		spawn_on(release_and_stay, NULL, &datum_a, KTRT_WEAK_OUT), 0);
	set(nr_ran[2], 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[2], &datum_a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
}

/* Has the holder's event ended? */
static int note_in_time(void *arg)
{
	if (!get(nr_ran[6]))
		more(nr_ran[7]);
	return note_run(arg);
}

static void do_others(void)
{
	struct ktrt_group *others;

	assert_int_equal(ktrt_group_new(&others), 0);
	task_group = others;
	for (int i = 0; i < 100; i++)
		assert_int_equal(spawn_with(note_run, &nr_ran[5], NULL, 0, 0),
				 0);
	task_group = NULL;
	assert_int_equal(ktrt_group_wait(others), 0);
	ktrt_group_free(others);
}

/*
 * External events of a task may be of what it does to its data, all but what it names
 * weakly alone.  That is released after the other in the same call, so if that was, too,
 * what waits for it is queued before others that a lone worker does.
 */
static void events_keep_data(unsigned mode, unsigned again, unsigned flags)
{
	struct ktrt_dep deps[] = { { &datum_a, 0, mode },
				   { &datum_a, 0, again },
				   { &datum_b, 0, KTRT_WEAK_INOUT } };

	begin_case();
	assert_int_equal(spawn_with(hold_data, NULL, deps, 3, flags), 0);
	assert_int_equal(
		spawn_on(note_in_time, &nr_ran[0], &datum_a, KTRT_INOUT), 0);
	wait_for_data(&datum_b);
	do_others();
	set(nr_ran[6], 1);
	release_holder();
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_ran[0], 1);
	assert_int_equal(nr_ran[7], 0);
}

static void events_keep_strong_data(void)
{
	events_keep_data(KTRT_INOUT, KTRT_INOUT, KTRT_EARLY_RELEASE);
	events_keep_data(KTRT_IN, KTRT_WEAK_INOUT, KTRT_EARLY_RELEASE);
	events_keep_data(KTRT_IN, KTRT_WEAK_INOUT, 0);
	events_keep_data(KTRT_WEAK_IN, KTRT_IN, 0);
	events_keep_data(KTRT_COMMUTATIVE, KTRT_WEAK_OUT, 0);
}

/* ---- what is refused ---- */

static void add_nothing(void *to, void *copy, void *unused)
{
}

static struct ktrt_reduction sum = { sizeof(sum), &datum_a,    sizeof(datum_a),
				     NULL,	  add_nothing, NULL };

static int misuse_release(void *arg)
{
	struct ktrt_dep dep = { &datum_a, 0, KTRT_IN };
	struct ktrt_dep other = { arg, 0, KTRT_IN };
	unsigned wrong = 0;

	/* It only reads. */
	for (unsigned mode = 2; mode < 20; mode++)
		wrong += spawn_on(note_run, &nr_ran[0],
				  mode == KTRT_REDUCTION ? (void *)&sum
							 : &datum_a,
				  mode) != (mode == KTRT_WEAK_IN ? 0 : -EINVAL);
	wrong += spawn_on(note_run, &nr_ran[1], &datum_a, KTRT_IN) != 0;
	wrong += ktrt_release(&other, 1) != -EINVAL;
	dep.len = 1;
	wrong += ktrt_release(&dep, 1) != -EINVAL;
	dep.len = 0;
	wrong += ktrt_release(&dep, 1) != 0;
	wrong += ktrt_release(&dep, 1) != 0;
	wrong += spawn_on(note_run, &nr_ran[0], &datum_a, KTRT_IN) != -EINVAL;
	wrong += spawn_on(note_run, &nr_ran[0], &datum_a, KTRT_WEAK_IN) !=
		 -EINVAL;
	wrong += spawn_on(note_run, &nr_ran[1], arg, KTRT_INOUT) != 0;
	return (int)wrong;
}

static int release_unnamed(void *arg)
{
	struct ktrt_dep dep = { &datum_a, 0, KTRT_IN };

	return ktrt_release(&dep, 1) == (arg ? 0 : -EINVAL) ? 0 : 1;
}

/* A range is released when all of it is, and nothing if one is refused. */
static int release_parts(void *range)
{
	struct ktrt_dep whole = { range, 100, KTRT_IN };
	struct ktrt_dep first = { range, 10, KTRT_IN };
	struct ktrt_dep both[] = { whole, first };
	unsigned wrong = 0;

	wrong += ktrt_release(&first, 1) != -EINVAL;
	wrong += ktrt_release(both, 2) != -EINVAL;
	wrong += spawn_with(note_run, &nr_ran[0], &whole, 1, 0) != 0;
	wrong += ktrt_release(&whole, 1) != 0;
	return (int)wrong;
}

static void a_part_is_refused(void)
{
	static char range[100];
	struct ktrt_dep dep = { range, sizeof(range), KTRT_WEAK_IN };

	begin_case();
	assert_int_equal(spawn_with(release_parts, range, &dep, 1, 0), 0);
	assert_int_equal(ktrt_wait(), 0);
	dep.mode = KTRT_IN;
	assert_int_equal(
		spawn_with(release_parts, range, &dep, 1, KTRT_EARLY_RELEASE),
		0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_ran[0], 2);
}

static void misuse_is_refused(void)
{
	static const unsigned bad[] = { KTRT_WEAK, KTRT_WEAK | KTRT_COMMUTATIVE,
					KTRT_WEAK | KTRT_REDUCTION, 32 };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &datum_a, 0, KTRT_WEAK_IN };
	struct ktrt_dep twice[] = { dep, dep };
	struct ktrt_graph *graph;

	begin_case();
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(bad); i++)
		assert_int_equal(
			spawn_on(note_run, &nr_ran[2], &datum_a, bad[i]),
			-EINVAL);
	assert_int_equal(ktrt_release(&dep, 1), -ESRCH);
	assert_int_equal(ktrt_wait_for(&dep, 1), -EINVAL);
	assert_int_equal(spawn_with(misuse_release, &datum_b, &dep, 1, 0), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(spawn_with(misuse_release, &datum_b, twice, 2, 0), 0);
	assert_int_equal(ktrt_wait(), 0);
	dep.mode = twice[0].mode = twice[1].mode = KTRT_IN;
	assert_int_equal(spawn_with(misuse_release, &datum_b, &dep, 1,
				    KTRT_EARLY_RELEASE),
			 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(spawn_with(misuse_release, &datum_b, twice, 2,
				    KTRT_EARLY_RELEASE),
			 0);
	assert_int_equal(ktrt_wait(), 0);
	/* One of them writes. */
	twice[1].mode = KTRT_OUT;
	assert_int_equal(
		spawn_with(note_and_use, NULL, twice, 2, KTRT_EARLY_RELEASE),
		0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(spawn_with(release_unnamed, NULL, &dep, 1, 0), 0);
	assert_int_equal(ktrt_wait(), 0);
	/* It has nothing to gain. */
	assert_int_equal(spawn_with(release_unnamed, &datum_b, &dep, 1,
				    KTRT_EARLY_RELEASE | KTRT_UNDEFERRED),
			 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_ran[0], 5);
	assert_int_equal(nr_ran[1], 9);
	assert_int_equal(nr_ran[2], 0);

	assert_int_equal(ktrt_graph_new(&graph), 0);
	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.flags = KTRT_EARLY_RELEASE;
	assert_int_equal(ktrt_graph_add(graph, note_run, nr_ran, &attr),
			 -EINVAL);
	attr.flags = 0;
	dep.mode = KTRT_WEAK_IN;
	assert_int_equal(ktrt_graph_add(graph, note_run, nr_ran, &attr),
			 -EINVAL);
	ktrt_graph_free(graph);
}

/* ---- limits ---- */

static void long_chains_need_no_stack(void)
{
	unsigned nr = KTEST_TSAN || KTEST_ASAN ? 3000 : 30000;

	begin_case();
	assert_int_equal(spawn_on(hold_data, NULL, &datum_a, KTRT_OUT), 0);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(spawn_on(note_run, &nr_ran[0], &datum_a,
					  KTRT_WEAK_INOUT),
				 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[1], &datum_a, KTRT_INOUT),
			 0);
	assert_true(comes_to(nr_ran[0], nr));
	assert_int_equal(get(nr_ran[1]), 0);
	release_holder();
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_ran[1], 1);
}

static int make_many(void *arg)
{
	int error = 0;

	for (int i = 0; i < 2000 && !error; i++)
		error = spawn_on(note_run, &nr_ran[0], &datum_a, KTRT_INOUT);
	return error;
}

/* All of them wait for what the test does later. */
static void waiting_children_may_be_many(void)
{
	begin_case();
	assert_int_equal(spawn_on(hold_data, NULL, &datum_a, KTRT_OUT), 0);
	assert_int_equal(spawn_on(make_many, NULL, &datum_a, KTRT_WEAK_OUT), 0);
	nap_us(1000);
	release_holder();
	assert_int_equal(spawn_on(note_run, &nr_ran[1], &datum_a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_ran[0], 2000);
}

static struct ktrt_group *awaited;

static int wait_for_group(void *arg)
{
	set(nr_ran[6], 1);
	while (!get(nr_ran[7]))
		nap_us(200);
	return ktrt_group_wait(awaited);
}

/*
 * The only worker waits for a task that comes after one beside its own.  An urgent one
 * whose children would wait for the worker is done only if it is that.
 */
static void lone_worker_does_what_it_needs(bool urgent)
{
	struct ktrt_dep deps[] = { { &datum_a, 0, KTRT_WEAK_INOUT },
				   { &datum_b, 0, KTRT_OUT } };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	begin_case();
	assert_int_equal(ktrt_group_new(&awaited), 0);
	assert_int_equal(spawn_on(wait_for_group, NULL, &datum_a, KTRT_OUT), 0);
	while (!get(nr_ran[6]))
		nap_us(200);
	attr.deps = deps;
	attr.nr_deps = urgent ? 2 : 1;
	attr.priority = 5;
	assert_int_equal(ktrt_spawn_attr(note_run, &nr_ran[0], &attr), 0);
	if (!urgent)
		assert_int_equal(
			spawn_on(note_run, &nr_ran[1], &datum_b, KTRT_OUT), 0);
	task_group = awaited;
	assert_int_equal(spawn_on(note_run, &nr_ran[2], &datum_b, KTRT_IN), 0);
	task_group = NULL;
	set(nr_ran[7], 1);
	assert_int_equal(ktrt_wait(), 0);
	ktrt_group_free(awaited);
	assert_int_equal(nr_ran[0], 1);
	assert_int_equal(nr_ran[1], !urgent);
	assert_int_equal(nr_ran[2], 1);
}

static void in_order(void)
{
	weak_tasks_begin_at_once();
	released_as_children_end();
	released_in_the_body();
	events_keep_strong_data();
}

static void data_is_released_in_order(void **state)
{
	in_each_way(in_order);
}

static void misuse_and_parts_are_refused(void **state)
{
	in_each_way(misuse_is_refused);
	in_each_way(a_part_is_refused);
}

static void limits_hold(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.max_children = 128;
	options.flags = KTRT_NO_UMT;
	assert_int_equal(ktrt_start(&options), 0);
	waiting_children_may_be_many();
	assert_int_equal(ktrt_stop(), 0);
	start_way(&all_ways[0]);
	long_chains_need_no_stack();
	assert_int_equal(ktrt_stop(), 0);
	options.workers = options.max_threads = 1;
	assert_int_equal(ktrt_start(&options), 0);
	lone_worker_does_what_it_needs(false);
	lone_worker_does_what_it_needs(true);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(data_is_released_in_order),
	   KTEST(misuse_and_parts_are_refused), KTEST(limits_hold))
