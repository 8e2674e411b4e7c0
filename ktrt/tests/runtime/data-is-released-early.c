/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* length: all cases are run in each way, and each holds data by the same few tasks */
/*
 * Data that a task names weakly, or with KTRT_EARLY_RELEASE: who waits for it, when it is
 * released, what children may do with it, and what failures, groups and limits do.
 */
#include "support/runs.h"

#include <stdlib.h>

#include "failalloc.h"

static int a, b; /* data */
static unsigned ran[8];
static struct ktrt_task *holder; /* has an event that the test ends */
static struct ktrt_group *group;

/* ---- making tasks ---- */

static int spawn(ktrt_func func, void *arg, const struct ktrt_dep *deps,
		 size_t nr, unsigned flags)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = nr;
	attr.flags = flags;
	attr.group = group;
	return ktrt_spawn_attr(func, arg, &attr);
}

static int spawn_on(ktrt_func func, void *arg, void *datum, unsigned mode)
{
	struct ktrt_dep dep = { datum, 0, mode };

	return spawn(func, arg, &dep, 1, 0);
}

static int note(void *arg)
{
	more(*(unsigned *)arg);
	return 0;
}

static int fail_task(void *arg)
{
	note(arg);
	return 77;
}

/* It is not complete until release_holder(). */
static int hold(void *arg)
{
	int error = ktrt_events_add(1);

	if (!error)
		set(holder, ktrt_self());
	return error;
}

static void release_holder(void)
{
	while (!get(holder))
		nap_us(200);
	ktrt_events_done(holder, 1);
	set(holder, NULL);
}

/* Until tasks that were made so far are done with it. */
static void wait_for(void *datum)
{
	struct ktrt_dep dep = { datum, 0, KTRT_INOUT };

	assert_int_equal(ktrt_wait_for(&dep, 1), 0);
}

static void begin(void)
{
	memset(ran, 0, sizeof(ran));
	set(holder, NULL);
	group = NULL;
}

/* ---- who waits ---- */

static int note_and_use(void *arg)
{
	note(&ran[0]);
	return spawn_on(note, &ran[1], &a, KTRT_INOUT);
}

static void weak_tasks_begin_at_once(void)
{
	struct ktrt_dep deps[] = { { &a, 0, KTRT_WEAK_INOUT },
				   { &b, 0, KTRT_WEAK_OUT } };

	begin();
	assert_int_equal(spawn_on(hold, NULL, &a, KTRT_OUT), 0);
	assert_int_equal(spawn(note_and_use, NULL, deps, 2, 0), 0);
	assert_int_equal(spawn_on(note, &ran[2], &a, KTRT_IN), 0);
	wait_for(&b);
	assert_int_equal(get(ran[0]), 1);
	assert_int_equal(get(ran[1]) + get(ran[2]), 0);
	release_holder();
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran[1], 1);
	assert_int_equal(ran[2], 1);
}

/* One child is not complete before what comes after the task has run. */
static int hold_b_use_a(void *arg)
{
	int error = spawn_on(hold, NULL, &b, KTRT_INOUT);

	return error ? error : spawn_on(note, &ran[1], &a, KTRT_INOUT);
}

static void others_need_not_wait_for_all(unsigned mode, unsigned flags)
{
	struct ktrt_dep deps[] = { { &a, 0, mode }, { &b, 0, mode } };

	begin();
	assert_int_equal(spawn(hold_b_use_a, NULL, deps, 2, flags), 0);
	assert_int_equal(spawn_on(note, &ran[2], &a, KTRT_IN), 0);
	assert_int_equal(spawn_on(note, &ran[3], &b, KTRT_IN), 0);
	wait_for(&a);
	assert_int_equal(get(ran[2]), 1);
	assert_int_equal(get(ran[1]), 1);
	assert_int_equal(get(ran[3]), 0);
	assert_int_equal(ktrt_wait_for(deps, 0), 0);
	release_holder();
	wait_for(&b);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran[3], 1);
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
	struct ktrt_dep dep = { &a, 0, KTRT_IN };
	int error = spawn_on(note, &ran[1], &a, KTRT_INOUT);

	if (!error)
		error = ktrt_release(&dep, 1);
	while (!error && !get(ran[2]))
		error = ktrt_yield();
	return error;
}

static void released_in_the_body(void)
{
	struct ktrt_dep dep = { &a, 0, KTRT_INOUT };

	begin();
	assert_int_equal(
		spawn(release_and_stay, NULL, &dep, 1, KTRT_EARLY_RELEASE), 0);
	assert_int_equal(spawn_on(note, &ran[2], &a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(spawn_on(release_and_stay, NULL, &a, KTRT_WEAK_OUT),
			 0);
	set(ran[2], 0);
	assert_int_equal(spawn_on(note, &ran[2], &a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
}

/* Has the holder's event ended? */
static int note_in_time(void *arg)
{
	if (!get(ran[6]))
		more(ran[7]);
	return note(arg);
}

static void do_others(void)
{
	struct ktrt_group *others;

	assert_int_equal(ktrt_group_new(&others), 0);
	group = others;
	for (int i = 0; i < 100; i++)
		assert_int_equal(spawn(note, &ran[5], NULL, 0, 0), 0);
	group = NULL;
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
	struct ktrt_dep deps[] = { { &a, 0, mode },
				   { &a, 0, again },
				   { &b, 0, KTRT_WEAK_INOUT } };

	begin();
	assert_int_equal(spawn(hold, NULL, deps, 3, flags), 0);
	assert_int_equal(spawn_on(note_in_time, &ran[0], &a, KTRT_INOUT), 0);
	wait_for(&b);
	do_others();
	set(ran[6], 1);
	release_holder();
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran[0], 1);
	assert_int_equal(ran[7], 0);
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

static void add(void *to, void *copy, void *unused)
{
}

static struct ktrt_reduction sum = {
	sizeof(sum), &a, sizeof(a), NULL, add, NULL
};

static int misuse(void *arg)
{
	struct ktrt_dep dep = { &a, 0, KTRT_IN };
	struct ktrt_dep other = { arg, 0, KTRT_IN };
	unsigned wrong = 0;

	/* It only reads. */
	for (unsigned mode = 2; mode < 20; mode++)
		wrong += spawn_on(note, &ran[0],
				  mode == KTRT_REDUCTION ? (void *)&sum : &a,
				  mode) != (mode == KTRT_WEAK_IN ? 0 : -EINVAL);
	wrong += spawn_on(note, &ran[1], &a, KTRT_IN) != 0;
	wrong += ktrt_release(&other, 1) != -EINVAL;
	dep.len = 1;
	wrong += ktrt_release(&dep, 1) != -EINVAL;
	dep.len = 0;
	wrong += ktrt_release(&dep, 1) != 0;
	wrong += ktrt_release(&dep, 1) != 0;
	wrong += spawn_on(note, &ran[0], &a, KTRT_IN) != -EINVAL;
	wrong += spawn_on(note, &ran[0], &a, KTRT_WEAK_IN) != -EINVAL;
	wrong += spawn_on(note, &ran[1], arg, KTRT_INOUT) != 0;
	return (int)wrong;
}

static int release_unnamed(void *arg)
{
	struct ktrt_dep dep = { &a, 0, KTRT_IN };

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
	wrong += spawn(note, &ran[0], &whole, 1, 0) != 0;
	wrong += ktrt_release(&whole, 1) != 0;
	return (int)wrong;
}

static void a_part_is_refused(void)
{
	static char range[100];
	struct ktrt_dep dep = { range, sizeof(range), KTRT_WEAK_IN };

	begin();
	assert_int_equal(spawn(release_parts, range, &dep, 1, 0), 0);
	assert_int_equal(ktrt_wait(), 0);
	dep.mode = KTRT_IN;
	assert_int_equal(
		spawn(release_parts, range, &dep, 1, KTRT_EARLY_RELEASE), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran[0], 2);
}

static void misuse_is_refused(void)
{
	static const unsigned bad[] = { KTRT_WEAK, KTRT_WEAK | KTRT_COMMUTATIVE,
					KTRT_WEAK | KTRT_REDUCTION, 32 };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &a, 0, KTRT_WEAK_IN };
	struct ktrt_dep twice[] = { dep, dep };
	struct ktrt_graph *graph;

	begin();
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(bad); i++)
		assert_int_equal(spawn_on(note, &ran[2], &a, bad[i]), -EINVAL);
	assert_int_equal(ktrt_release(&dep, 1), -ESRCH);
	assert_int_equal(ktrt_wait_for(&dep, 1), -EINVAL);
	assert_int_equal(spawn(misuse, &b, &dep, 1, 0), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(spawn(misuse, &b, twice, 2, 0), 0);
	assert_int_equal(ktrt_wait(), 0);
	dep.mode = twice[0].mode = twice[1].mode = KTRT_IN;
	assert_int_equal(spawn(misuse, &b, &dep, 1, KTRT_EARLY_RELEASE), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(spawn(misuse, &b, twice, 2, KTRT_EARLY_RELEASE), 0);
	assert_int_equal(ktrt_wait(), 0);
	/* One of them writes. */
	twice[1].mode = KTRT_OUT;
	assert_int_equal(
		spawn(note_and_use, NULL, twice, 2, KTRT_EARLY_RELEASE), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(spawn(release_unnamed, NULL, &dep, 1, 0), 0);
	assert_int_equal(ktrt_wait(), 0);
	/* It has nothing to gain. */
	assert_int_equal(spawn(release_unnamed, &b, &dep, 1,
			       KTRT_EARLY_RELEASE | KTRT_UNDEFERRED),
			 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran[0], 5);
	assert_int_equal(ran[1], 9);
	assert_int_equal(ran[2], 0);

	assert_int_equal(ktrt_graph_new(&graph), 0);
	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.flags = KTRT_EARLY_RELEASE;
	assert_int_equal(ktrt_graph_add(graph, note, ran, &attr), -EINVAL);
	attr.flags = 0;
	dep.mode = KTRT_WEAK_IN;
	assert_int_equal(ktrt_graph_add(graph, note, ran, &attr), -EINVAL);
	ktrt_graph_free(graph);
}

/* ---- failures ---- */

/* A wait before there are children tells of none of them. */
static int read_and_write(void *arg)
{
	int error = ktrt_wait();

	note(&ran[0]);
	if (!error)
		error = spawn_on(note, &ran[1], &a, KTRT_IN);
	if (!error && arg)
		error = ktrt_wait() == -ECANCELED ? 0 : 1;
	if (!error)
		error = spawn_on(note, &ran[2], &a, KTRT_IN);
	return error ? error : spawn_on(note, &ran[3], &a, KTRT_OUT);
}

static void spoilt_data_reaches_children(bool told)
{
	begin();
	assert_int_equal(spawn_on(fail_task, &ran[4], &a, KTRT_OUT), 0);
	assert_int_equal(
		spawn_on(read_and_write, told ? &a : NULL, &a, KTRT_WEAK_INOUT),
		0);
	assert_int_equal(spawn_on(note, &ran[5], &a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(ran[0], 1);
	assert_int_equal(ran[1], 0);
	assert_int_equal(ran[2], told);
	assert_int_equal(ran[3], 1);
	/* All that the child writes is good again. */
	assert_int_equal(ran[5], 1);
}

static int do_nothing(void *arg)
{
	return 0;
}

static void spoilt_data_goes_past(void)
{
	struct ktrt_dep dep = { &a, 0, KTRT_INOUT };

	begin();
	assert_int_equal(spawn_on(fail_task, &ran[4], &a, KTRT_OUT), 0);
	assert_int_equal(spawn_on(do_nothing, NULL, &a, KTRT_WEAK_INOUT), 0);
	assert_int_equal(spawn_on(note, &ran[0], &a, KTRT_IN), 0);
	assert_int_equal(spawn_on(do_nothing, NULL, &a, KTRT_WEAK_IN), 0);
	assert_int_equal(spawn_on(note, &ran[0], &a, KTRT_INOUT), 0);
	assert_int_equal(spawn(note, &ran[0], &dep, 1, KTRT_EARLY_RELEASE), 0);
	assert_int_equal(spawn_on(do_nothing, NULL, &a, KTRT_WEAK_OUT), 0);
	assert_int_equal(spawn_on(note, &ran[1], &a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(ran[0], 0);
	assert_int_equal(ran[1], 1);
}

static char bytes[100];

/* Its children cut the data in so many parts that its end needs memory. */
static int read_all_without_memory(void *arg)
{
	int error = 0;

	for (size_t i = 0; i < sizeof(bytes) && !error; i++) {
		struct ktrt_dep dep = { &bytes[i], 1, KTRT_IN };

		error = spawn(note, &ran[1], &dep, 1, KTRT_ALWAYS);
	}
	while (!get(ran[7]))
		nap_us(200);
	failalloc_arm_from(1, FAILALLOC_MEMORY);
	return error;
}

static void spoilt_data_goes_past_without_memory(void)
{
	struct ktrt_dep dep = { bytes, sizeof(bytes), KTRT_OUT };

	begin();
	assert_int_equal(spawn(fail_task, &ran[4], &dep, 1, 0), 0);
	dep.mode = KTRT_WEAK_INOUT;
	assert_int_equal(spawn(read_all_without_memory, NULL, &dep, 1, 0), 0);
	dep.mode = KTRT_IN;
	assert_int_equal(spawn(note, &ran[0], &dep, 1, 0), 0);
	set(ran[7], 1);
	assert_int_equal(ktrt_wait(), 77);
	assert_true(failalloc_disarm() > 0);
	assert_int_equal(ran[1], sizeof(bytes));
	assert_int_equal(ran[0], 0);
}

static int fail_below(void *arg)
{
	int error = spawn_on(fail_task, &ran[4], &a, KTRT_INOUT);

	if (!error && arg && ktrt_wait() != 77)
		error = 1;
	return error;
}

/* What a child has failed to write its parent has, unless it was told. */
static void failed_children_spoil_data(unsigned mode, unsigned flags)
{
	struct ktrt_dep dep = { &a, 0, mode };

	begin();
	assert_int_equal(spawn(fail_below, NULL, &dep, 1, flags), 0);
	assert_int_equal(spawn_on(note, &ran[0], &a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(ran[0], 0);
	assert_int_equal(spawn(fail_below, &a, &dep, 1, flags), 0);
	assert_int_equal(spawn_on(note, &ran[0], &a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran[0], 1);
	assert_int_equal(spawn(fail_task, &ran[4], &dep, 1, flags), 0);
	assert_int_equal(spawn_on(note, &ran[0], &a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(ran[0], 1);
}

/* Which of the two is released first does not matter. */
static void failed_children_spoil_data_named_twice(unsigned first,
						   unsigned second)
{
	struct ktrt_dep deps[] = { { &a, 0, first }, { &a, 0, second } };

	begin();
	assert_int_equal(spawn(fail_below, NULL, deps, 2, 0), 0);
	assert_int_equal(spawn_on(note, &ran[0], &a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(ran[0], 0);
}

/* No body of theirs is begun. */
static void cancelled_tasks_release(void)
{
	begin();
	assert_int_equal(spawn_on(hold, NULL, &b, KTRT_OUT), 0);
	assert_int_equal(ktrt_group_new(&group), 0);
	ktrt_group_cancel(group);
	assert_int_equal(spawn_on(note_and_use, NULL, &b, KTRT_WEAK_INOUT), 0);
	assert_int_equal(ktrt_group_wait(group), -ECANCELED);
	release_holder();
	ktrt_group_free(group);
	group = NULL;
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(spawn_on(note, &ran[2], &b, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran[0] + ran[1], 0);
	assert_int_equal(ran[2], 1);
}

static void failures(void)
{
	spoilt_data_reaches_children(false);
	spoilt_data_reaches_children(true);
	spoilt_data_goes_past();
	spoilt_data_goes_past_without_memory();
	failed_children_spoil_data(KTRT_WEAK_INOUT, 0);
	failed_children_spoil_data(KTRT_INOUT, KTRT_EARLY_RELEASE);
	failed_children_spoil_data_named_twice(KTRT_WEAK_IN, KTRT_WEAK_OUT);
	failed_children_spoil_data_named_twice(KTRT_WEAK_OUT, KTRT_WEAK_IN);
	cancelled_tasks_release();
}

/* ---- limits ---- */

static void long_chains_need_no_stack(void)
{
	unsigned nr = KTEST_TSAN || KTEST_ASAN ? 3000 : 30000;

	begin();
	assert_int_equal(spawn_on(hold, NULL, &a, KTRT_OUT), 0);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(spawn_on(note, &ran[0], &a, KTRT_WEAK_INOUT),
				 0);
	assert_int_equal(spawn_on(note, &ran[1], &a, KTRT_INOUT), 0);
	assert_true(comes_to(ran[0], nr));
	assert_int_equal(get(ran[1]), 0);
	release_holder();
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran[1], 1);
}

static int make_many(void *arg)
{
	int error = 0;

	for (int i = 0; i < 2000 && !error; i++)
		error = spawn_on(note, &ran[0], &a, KTRT_INOUT);
	return error;
}

/* All of them wait for what the test does later. */
static void waiting_children_may_be_many(void)
{
	begin();
	assert_int_equal(spawn_on(hold, NULL, &a, KTRT_OUT), 0);
	assert_int_equal(spawn_on(make_many, NULL, &a, KTRT_WEAK_OUT), 0);
	nap_us(1000);
	release_holder();
	assert_int_equal(spawn_on(note, &ran[1], &a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ran[0], 2000);
}

static struct ktrt_group *awaited;

static int wait_for_group(void *arg)
{
	set(ran[6], 1);
	while (!get(ran[7]))
		nap_us(200);
	return ktrt_group_wait(awaited);
}

/*
 * The only worker waits for a task that comes after one beside its own.  An urgent one
 * whose children would wait for the worker is done only if it is that.
 */
static void lone_worker_does_what_it_needs(bool urgent)
{
	struct ktrt_dep deps[] = { { &a, 0, KTRT_WEAK_INOUT },
				   { &b, 0, KTRT_OUT } };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	begin();
	assert_int_equal(ktrt_group_new(&awaited), 0);
	assert_int_equal(spawn_on(wait_for_group, NULL, &a, KTRT_OUT), 0);
	while (!get(ran[6]))
		nap_us(200);
	attr.deps = deps;
	attr.nr_deps = urgent ? 2 : 1;
	attr.priority = 5;
	assert_int_equal(ktrt_spawn_attr(note, &ran[0], &attr), 0);
	if (!urgent)
		assert_int_equal(spawn_on(note, &ran[1], &b, KTRT_OUT), 0);
	group = awaited;
	assert_int_equal(spawn_on(note, &ran[2], &b, KTRT_IN), 0);
	group = NULL;
	set(ran[7], 1);
	assert_int_equal(ktrt_wait(), 0);
	ktrt_group_free(awaited);
	assert_int_equal(ran[0], 1);
	assert_int_equal(ran[1], !urgent);
	assert_int_equal(ran[2], 1);
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

static void refused(void **state)
{
	in_each_way(misuse_is_refused);
	in_each_way(a_part_is_refused);
}

static void failures_are_passed_on(void **state)
{
	in_each_way(failures);
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

KTEST_MAIN(KTEST(data_is_released_in_order), KTEST(refused),
	   KTEST(failures_are_passed_on), KTEST(limits_hold))
