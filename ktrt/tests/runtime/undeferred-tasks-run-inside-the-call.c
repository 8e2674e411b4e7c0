/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks with KTRT_UNDEFERRED are done inside the call that makes them, once what they
 * use is ready; below one with KTRT_FINAL all are, in the order of a program
 * without tasks.  Otherwise they are tasks as others.
 */
#include "support/runs.h"

#include <pthread.h>

#define DEEP 9
#define CALLS ((1 << (DEEP + 1)) - 1)

static int make_task(ktrt_func func, void *arg, unsigned flags,
		     struct ktrt_group *group, const struct ktrt_dep *dep)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.flags = flags;
	attr.group = group;
	attr.deps = dep;
	attr.nr_deps = dep ? 1 : 0;
	return ktrt_spawn_attr(func, arg, &attr);
}

/* ---- now ---- */

static int value;

static int note_thread(void *arg)
{
	*(int *)arg = ktrt_thread_index() + 1;
	return 0;
}

static int write_late(void *arg)
{
	nap_us(2000);
	*(int *)arg = 7;
	return 0;
}

static int add_one(void *arg)
{
	++*(int *)arg;
	return 0;
}

static int fail_task(void *arg)
{
	return -EDOM;
}

static int make_now(void *arg)
{
	static const unsigned modes[] = { KTRT_IN, KTRT_OUT, KTRT_INOUT,
					  KTRT_COMMUTATIVE };
	struct ktrt_dep dep = { &value, 0, KTRT_OUT };
	int thread = 0;

	assert_int_equal(
		make_task(note_thread, &thread, KTRT_UNDEFERRED, NULL, NULL),
		0);
	assert_int_equal(thread, ktrt_thread_index() + 1);
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(modes); i++) {
		value = 0;
		dep.mode = i == 1 ? KTRT_OUT : KTRT_COMMUTATIVE;
		assert_int_equal(make_task(write_late, &value, 0, NULL, &dep),
				 0);
		dep.mode = modes[i];
		assert_int_equal(
			make_task(add_one, &value, KTRT_UNDEFERRED, NULL, &dep),
			0);
		assert_int_equal(value, 8);
	}
	assert_int_equal(
		make_task(fail_task, NULL, KTRT_UNDEFERRED, NULL, NULL), 0);
	assert_int_equal(ktrt_wait(), -EDOM);
	return 0;
}

static void do_now(void)
{
	/* By a task, and by the thread that is attached. */
	assert_int_equal(ktrt_run(make_now, NULL), 0);
	make_now(NULL);
}

static const struct ktrt_reduction sum = {
	.struct_size = sizeof(sum),
	.data = &value,
	.bytes = sizeof(value),
	.combine = NULL,
};

static void add_copy(void *data, void *copy, void *arg)
{
	*(int *)data += *(int *)copy;
}

static int add_to_copy(void *reduction)
{
	++*(int *)ktrt_reduction_copy(reduction);
	return 0;
}

static int sum_now(void *arg)
{
	struct ktrt_reduction reduction = sum;
	struct ktrt_dep dep = { &reduction, 0, KTRT_REDUCTION };

	reduction.combine = add_copy;
	value = 0;
	for (int i = 0; i < 20; i++)
		assert_int_equal(make_task(add_to_copy, &reduction,
					   i % 2 ? KTRT_UNDEFERRED : 0, NULL,
					   &dep),
				 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(value, 20);
	return 0;
}

static void do_sums(void)
{
	assert_int_equal(ktrt_run(sum_now, NULL), 0);
}

static int nr_done;

static int count_done(void *arg)
{
	more(nr_done);
	return 0;
}

static int cancel_first(void *arg)
{
	struct ktrt_group *group;

	set(nr_done, 0);
	assert_int_equal(ktrt_group_new(&group), 0);
	assert_int_equal(
		make_task(count_done, NULL, KTRT_UNDEFERRED, group, NULL), 0);
	assert_int_equal(get(nr_done), 1);
	assert_int_equal(ktrt_group_wait(group), 0);
	ktrt_group_cancel(group);
	assert_int_equal(
		make_task(count_done, NULL, KTRT_UNDEFERRED, group, NULL), 0);
	assert_int_equal(get(nr_done), 1);
	assert_int_equal(make_task(count_done, NULL,
				   KTRT_UNDEFERRED | KTRT_ALWAYS, group, NULL),
			 0);
	assert_int_equal(get(nr_done), 2);
	assert_int_equal(ktrt_group_wait(group), -ECANCELED);
	ktrt_group_free(group);
	return 0;
}

static void do_groups(void)
{
	assert_int_equal(ktrt_run(cancel_first, NULL), 0);
}

/* What they read may be spoilt, as what others read. */
static int count_cancelled(void *arg)
{
	if (ktrt_cancelled())
		more(nr_done);
	return 0;
}

static int read_spoilt(void *arg)
{
	struct ktrt_dep dep = { &value, 0, KTRT_OUT };

	set(nr_done, 0);
	assert_int_equal(make_task(fail_task, NULL, 0, NULL, &dep), 0);
	dep.mode = KTRT_IN;
	assert_int_equal(
		make_task(count_done, NULL, KTRT_UNDEFERRED, NULL, &dep), 0);
	assert_int_equal(get(nr_done), 0);
	assert_int_equal(make_task(count_cancelled, NULL,
				   KTRT_UNDEFERRED | KTRT_ALWAYS, NULL, &dep),
			 0);
	assert_int_equal(get(nr_done), 1);
	dep.mode = KTRT_OUT;
	assert_int_equal(
		make_task(count_done, NULL, KTRT_UNDEFERRED, NULL, &dep), 0);
	dep.mode = KTRT_INOUT;
	assert_int_equal(
		make_task(count_done, NULL, KTRT_UNDEFERRED, NULL, &dep), 0);
	assert_int_equal(get(nr_done), 3);
	assert_int_equal(ktrt_wait(), -EDOM);
	return 0;
}

static void do_spoilt(void)
{
	assert_int_equal(ktrt_run(read_spoilt, NULL), 0);
}

/* They add beside others, for whose end they need not wait. */
static int add_when_told(void *reduction)
{
	while (!get(nr_done))
		nap_us(100);
	return add_to_copy(reduction);
}

static int add_beside(void *arg)
{
	struct ktrt_reduction reduction = sum;
	struct ktrt_dep dep = { &reduction, 0, KTRT_REDUCTION };

	reduction.combine = add_copy;
	value = 0;
	set(nr_done, 0);
	assert_int_equal(make_task(add_when_told, &reduction, 0, NULL, &dep),
			 0);
	assert_int_equal(
		make_task(add_to_copy, &reduction, KTRT_UNDEFERRED, NULL, &dep),
		0);
	set(nr_done, 1);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(value, 2);
	return 0;
}

static void do_beside(void)
{
	assert_int_equal(ktrt_run(add_beside, NULL), 0);
}

/* The thread ends, and the task fails. */
static int leave_thread(void *arg)
{
	pthread_exit(NULL);
}

static int leave_inside(void *arg)
{
	make_task(leave_thread, NULL, KTRT_UNDEFERRED, NULL, NULL);
	more(nr_done);
	return 0;
}

static void do_leaving(void)
{
	set(nr_done, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(ktrt_run(leave_inside, NULL), -ECANCELED);
	assert_int_equal(get(nr_done), 0);
}

/* ---- final ---- */

static int order[CALLS], nr_calls, thread_of_all;

struct call {
	int number, level;
};

/* By each call that makes a task. */
static int make_call(ktrt_func func, const struct call *call)
{
	struct ktrt_dep dep = { &order, 0, KTRT_INOUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	void *buffer;

	switch (call->number % 4) {
	case 0:
		return ktrt_spawn_copy(func, call, sizeof(*call));
	case 1:
		buffer = ktrt_spawn_begin(func, sizeof(*call), 0);
		assert_non_null(buffer);
		memcpy(buffer, call, sizeof(*call));
		ktrt_spawn_end(func, buffer);
		return 0;
	case 2:
		attr.deps = &dep;
		attr.nr_deps = 1;
		attr.arg_bytes = sizeof(*call);
		return ktrt_spawn_attr(func, (void *)call, &attr);
	default:
		return ktrt_spawn(func, (void *)call);
	}
}

/* A tree of calls, numbered from the top. */
static int descend_tree(void *arg)
{
	const struct call *call = arg;

	assert_int_equal(ktrt_in_final(), 1);
	assert_int_equal(ktrt_thread_index(), thread_of_all);
	order[nr_calls++] = call->number;
	for (int i = 1; i <= 2 && call->level < DEEP; i++) {
		struct call below = { call->number * 2 + i, call->level + 1 };
		int before = nr_calls;

		assert_int_equal(make_call(descend_tree, &below), 0);
		assert_true(nr_calls > before);
	}
	return call->number == 5 ? -EDOM : 0;
}

static int descend_first(void *arg)
{
	struct call top = { 0, 0 };

	assert_int_equal(ktrt_in_final(), 1);
	thread_of_all = ktrt_thread_index();
	return descend_tree(&top);
}

static int number_calls(int number, int level, int at)
{
	assert_int_equal(order[at++], number);
	for (int i = 1; i <= 2 && level < DEEP; i++)
		at = number_calls(number * 2 + i, level + 1, at);
	return at;
}

static int make_final(void *arg)
{
	nr_calls = 0;
	assert_int_equal(ktrt_in_final(), 0);
	assert_int_equal(make_task(descend_first, NULL, KTRT_FINAL, NULL, NULL),
			 0);
	assert_int_equal(ktrt_wait(), -EDOM);
	assert_int_equal(ktrt_in_final(), 0);
	assert_int_equal(nr_calls, CALLS);
	assert_int_equal(number_calls(0, 0, 0), CALLS);
	return 0;
}

static void do_final(void)
{
	assert_int_equal(ktrt_run(make_final, NULL), 0);
	make_final(NULL);
}

/* An event is done by another task, which is not below the final one. */
static struct ktrt_task *waits;

static int begin_event(void *arg)
{
	assert_int_equal(ktrt_events_add(1), 0);
	set(waits, ktrt_self());
	return 0;
}

static int end_event(void *arg)
{
	while (!get(waits))
		ktrt_yield();
	nap_us(1000);
	value = 3;
	ktrt_events_done(get(waits), 1);
	return 0;
}

static int need_event(void *arg)
{
	return value == 3 ? 0 : -EDOM;
}

static int use_events(void *arg)
{
	struct ktrt_dep dep = { &value, 0, KTRT_INOUT };

	value = 0;
	assert_int_equal(make_task(begin_event, NULL, 0, NULL, &dep), 0);
	assert_int_equal(make_task(need_event, NULL, 0, NULL, &dep), 0);
	return ktrt_wait();
}

static int make_events(void *arg)
{
	set(waits, NULL);
	assert_int_equal(ktrt_spawn(end_event, NULL), 0);
	assert_int_equal(make_task(use_events, NULL, KTRT_FINAL, NULL, NULL),
			 0);
	return ktrt_wait();
}

static void do_events(void)
{
	assert_int_equal(ktrt_run(make_events, NULL), 0);
}

static int sum_range(size_t first, size_t end, void *arg)
{
	for (; first < end; first++)
		*(size_t *)arg += first;
	return 0;
}

/* The sum is plain: one thread does it all. */
static int loop_in_final(void *arg)
{
	size_t all = 0;

	assert_int_equal(ktrt_for(0, 10000, 1, sum_range, &all), 0);
	assert_int_equal(all, 10000 / 2 * 9999);
	return 0;
}

static void do_loops(void)
{
	assert_int_equal(make_task(loop_in_final, NULL, KTRT_FINAL, NULL, NULL),
			 0);
	assert_int_equal(ktrt_wait(), 0);
}

static void do_all(void)
{
	do_now();
	do_sums();
	do_groups();
	do_spoilt();
	do_beside();
	do_leaving();
	do_final();
	do_events();
	do_loops();
}

static void they_run_inside_the_call(void **state)
{
	in_each_way(do_all);
}

static void nodes_are_no_such(void **state)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_in_final(), 0);
	start_way(&all_ways[0]);
	assert_int_equal(ktrt_graph_new(&graph), 0);
	attr.flags = KTRT_UNDEFERRED;
	assert_int_equal(ktrt_graph_add(graph, count_done, NULL, &attr),
			 -EINVAL);
	attr.flags = KTRT_FINAL;
	assert_int_equal(ktrt_graph_add(graph, count_done, NULL, &attr),
			 -EINVAL);
	attr.flags = KTRT_EARLY_RELEASE << 1;
	assert_int_equal(ktrt_spawn_attr(count_done, NULL, &attr), -EINVAL);
	ktrt_graph_free(graph);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(they_run_inside_the_call), KTEST(nodes_are_no_such))
