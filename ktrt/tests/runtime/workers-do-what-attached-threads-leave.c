/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread that helps does only tasks whose functions are known to be brief.  One
 * of these may wait for a task that is not.  If all threads that there may be wait, one of
 * them does that task, whatever else is queued, also if this ends what it waits for itself.
 * Once the attached thread waits for something else, no other task is taken for that one,
 * although it may have the same record.
 */
#include "support/attached_thread.h"

#include <pthread.h>

#define OTHERS 20

/* How the attached thread's task waits. */
enum { RUN, WAIT, GROUP_WAIT, WAIT_FOR, UNDEFERRED, YIELD };

static pthread_t attached;
static unsigned way, begun, helps, left_done, helped, others_done;
static struct ktrt_group *awaited, *lefts;
static struct ktrt_graph *graph;
static char inner;
static struct worker *visitor;
static struct ktrt_task *was_left, *event_holder;
static unsigned holds_event, released, others_made, in_vain, recycled;

/* ---- what is left to the worker ---- */

static int do_left(void *arg)
{
	ktest_check(!pthread_equal(pthread_self(), attached));
	was_left = ktrt_self();
	set(left_done, 1);
	return 0;
}

static const ktrt_func left = do_left, own = ktrt_dispatch;

/* Functions that are called so never count as brief. */
static int spawn_left(unsigned mode, struct ktrt_group *group)
{
	const struct ktrt_dep dep = { &inner, 0, mode };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.arg_bytes = sizeof(left);
	attr.group = group;
	attr.deps = &dep;
	attr.nr_deps = mode != 0;
	return ktrt_spawn_attr(own, (void *)&left, &attr);
}

/* ---- the attached thread's task ---- */

static int do_nothing(void *arg)
{
	return 0;
}

static void wait_for_group(void)
{
	struct ktrt_group *group;

	ktest_check(!ktrt_group_new(&group));
	ktest_check(!spawn_left(0, group));
	ktest_check(!ktrt_group_wait(group));
	ktrt_group_free(group);
}

static void wait_for_data(void)
{
	const struct ktrt_dep dep = { &inner, 0, KTRT_IN };

	ktest_check(!spawn_left(KTRT_OUT, NULL));
	ktest_check(!ktrt_wait_for(&dep, 1));
}

static void spawn_undeferred(void)
{
	const struct ktrt_dep dep = { &inner, 0, KTRT_IN };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.flags = KTRT_UNDEFERRED;
	attr.deps = &dep;
	attr.nr_deps = 1;
	ktest_check(!spawn_left(KTRT_OUT, NULL));
	ktest_check(!ktrt_spawn_attr(do_nothing, NULL, &attr));
}

static void wait_somehow(void)
{
	switch (way) {
	case RUN:
		ktest_check(!ktrt_graph_run(graph));
		break;
	case WAIT:
		ktest_check(!spawn_left(0, NULL));
		ktest_check(!ktrt_wait());
		break;
	case GROUP_WAIT:
		wait_for_group();
		break;
	case WAIT_FOR:
		wait_for_data();
		break;
	case UNDEFERRED:
		spawn_undeferred();
		break;
	case YIELD:
		ktest_check(!spawn_left(0, NULL));
		while (!get(left_done))
			ktest_check(!ktrt_yield());
		break;
	}
}

static int help_once(void *arg)
{
	ktest_check(pthread_equal(pthread_self(), attached));
	set(helps, 1);
	wait_somehow();
	ktest_check(get(left_done));
	set(helped, 1);
	return 0;
}

static const ktrt_func once = help_once;

/* ---- the attached thread's task that waits for something else afterwards ---- */

static int hold_event(void *arg)
{
	event_holder = ktrt_self();
	ktest_check(!ktrt_events_add(1));
	set(holds_event, 1);
	return 0;
}

static const ktrt_func hold = hold_event;

static void spawn_holder(struct ktrt_group *group)
{
	const struct ktrt_dep dep = { &inner, 0, KTRT_OUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.group = group;
	ktest_check(!ktrt_spawn_attr(call_briefly, (void *)&hold, &attr));
}

static void wait_for_group_of_holder(void)
{
	struct ktrt_group *group;

	ktest_check(!ktrt_group_new(&group));
	spawn_holder(group);
	ktest_check(!ktrt_group_wait(group));
	ktrt_group_free(group);
}

static void wait_for_data_of_holder(void)
{
	const struct ktrt_dep dep = { &inner, 0, KTRT_IN };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	spawn_holder(NULL);
	attr.flags = KTRT_UNDEFERRED;
	attr.deps = &dep;
	attr.nr_deps = 1;
	ktest_check(!ktrt_spawn_attr(do_nothing, NULL, &attr));
}

static int help_twice(void *arg)
{
	ktest_check(pthread_equal(pthread_self(), attached));
	set(helps, 1);
	ktest_check(!spawn_left(0, lefts));
	ktest_check(!ktrt_wait());
	if (way == GROUP_WAIT)
		wait_for_group_of_holder();
	else if (way == UNDEFERRED)
		wait_for_data_of_holder();
	else
		spawn_holder(NULL);
	ktest_check(!ktrt_wait());
	set(helped, 1);
	return 0;
}

static const ktrt_func twice = help_twice;

/* ---- the worker's tasks ---- */

/* For what comes after that task. */
static int wait_for_awaited(void *arg)
{
	set(begun, 1);
	while (!get(helps))
		nap_us(200);
	return ktrt_group_wait(awaited);
}

/* They wait for it, too, but the runtime does not know. */
static int await_help(void *arg)
{
	while (!get(helped))
		nap_us(200);
	more(others_done);
	return 0;
}

static const ktrt_func other = await_help;

/* No worker that waits does it before all have long waited in vain. */
static int be_left_alone(void *arg)
{
	ktest_check(get(released) || at_load(&rt.in_vain) != in_vain);
	if (ktrt_self() == was_left)
		set(recycled, 1);
	more(others_done);
	return 0;
}

static const ktrt_func alone = be_left_alone;

static int wait_last(void *arg)
{
	set(others_made, 1);
	return ktrt_group_wait(awaited);
}

/* It does what was left, and makes others in that record.  The newest task is done
 * first, and the others are none of its children. */
static int do_left_and_wait(void *arg)
{
	set(begun, 1);
	ktest_check(holds_soon(get(visitor->left)));
	ktest_check(!ktrt_group_wait(lefts));
	in_vain = at_load(&rt.in_vain);
	for (int i = 0; i < OTHERS; i++)
		ktest_check(!ktrt_spawn_copy(own, &alone, sizeof(alone)));
	return ktrt_spawn(wait_last, NULL);
}

/* ---- tests ---- */

static void start_runtime(unsigned flags)
{
	attached = pthread_self();
	start_with_one_worker(flags);
	visitor = self_worker;
	ktest_check(!ktrt_group_new(&awaited));
	ktest_check(!ktrt_group_new(&lefts));
	ktest_check(!ktrt_graph_new(&graph));
	ktest_check(ktrt_graph_add(graph, do_left, NULL, NULL) == 0);
}

static void stop_runtime(void)
{
	ktrt_graph_free(graph);
	ktrt_group_free(lefts);
	ktrt_group_free(awaited);
	ktest_check(!ktrt_stop());
}

/* The only worker waits for what comes after the attached thread's task. */
static int have_both_wait(void *arg)
{
	start_runtime((unsigned)(uintptr_t)arg);
	ktest_check(!ktrt_spawn(wait_for_awaited, NULL));
	ktest_check(holds_soon(get(begun)));
	for (int i = 0; i < OTHERS; i++)
		ktest_check(!ktrt_spawn_copy(own, &other, sizeof(other)));
	spawn_using(call_briefly, (void *)&once, KTRT_OUT, NULL);
	spawn_using(do_nothing, NULL, KTRT_IN, awaited);
	ktest_check(!ktrt_wait());
	ktest_check(get(helped) && get(others_done) == OTHERS);
	stop_runtime();
	return 0;
}

/* When all have searched in vain several times. */
static void *release_event(void *arg)
{
	uint32_t before;

	(void)holds_soon(get(holds_event) && get(others_made));
	for (int i = 0; i < 5; i++) {
		before = at_load(&rt.searched);
		(void)holds_soon(at_load(&rt.searched) != before);
	}
	set(released, 1);
	ktrt_events_done(event_holder, 1);
	return NULL;
}

/* Then the attached thread waits for what comes from elsewhere. */
static int have_it_wait_again(void *arg)
{
	pthread_t thread;

	start_runtime((unsigned)(uintptr_t)arg);
	ktest_check(!pthread_create(&thread, NULL, release_event, NULL));
	ktest_check(!ktrt_spawn(do_left_and_wait, NULL));
	ktest_check(holds_soon(get(begun)));
	spawn_using(call_briefly, (void *)&twice, KTRT_OUT, NULL);
	spawn_using(do_nothing, NULL, KTRT_IN, awaited);
	ktest_check(!ktrt_wait());
	ktest_check(get(helped) && get(others_done) == OTHERS);
	ktest_check(get(recycled));
	ktest_check(!pthread_join(thread, NULL));
	stop_runtime();
	return 0;
}

/* The only worker waits for an event that comes after the attached thread's task, which that
 * does where it makes it. */
static int hold_for_awaited(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.group = awaited;
	ktest_check(!ktrt_spawn_attr(hold_event, NULL, &attr));
	return ktrt_group_wait(awaited);
}

static void *release_when_helped(void *arg)
{
	ktest_check(holds_soon(get(helped)));
	ktrt_events_done(event_holder, 1);
	return NULL;
}

/* If that loses its CPU for long the queue may hold plenty no more; then it is done later. */
static int have_it_done_at_once(void *arg)
{
	pthread_t thread;

	start_runtime((unsigned)(uintptr_t)arg);
	ktest_check(!ktrt_spawn(hold_for_awaited, NULL));
	ktest_check(holds_soon(get(holds_event)));
	ktest_check(!pthread_create(&thread, NULL, release_when_helped, NULL));
	for (int i = 0; i < OTHERS; i++)
		ktest_check(!ktrt_spawn_copy(own, &other, sizeof(other)));
	func_note_tried(call_briefly);
	ktest_check(!ktrt_spawn(call_briefly, (void *)&once));
	printf("# done at once: %u\n", get(helped));
	ktest_check(!ktrt_wait());
	ktest_check(get(others_done) == OTHERS);
	ktest_check(!pthread_join(thread, NULL));
	stop_runtime();
	return 0;
}

static void try_way(ktrt_func test, unsigned wanted)
{
	const unsigned flags[] = { KTRT_NO_UMT, KTRT_UMT_FIRST };

	way = wanted;
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(flags); i++)
		assert_int_equal(
			ktest_in_child(test, (void *)(uintptr_t)flags[i]), 0);
}

static void nodes_are_done(void **state)
{
	try_way(have_both_wait, RUN);
}

static void children_are_done(void **state)
{
	try_way(have_both_wait, WAIT);
}

static void groups_are_done(void **state)
{
	try_way(have_both_wait, GROUP_WAIT);
}

static void data_is_ready(void **state)
{
	try_way(have_both_wait, WAIT_FOR);
}

static void undeferred_tasks_begin(void **state)
{
	try_way(have_both_wait, UNDEFERRED);
}

static void yields_have_it_done(void **state)
{
	try_way(have_both_wait, YIELD);
}

static void others_are_not_taken_for_it(void **state)
{
	try_way(have_it_wait_again, WAIT);
	try_way(have_it_wait_again, GROUP_WAIT);
	try_way(have_it_wait_again, UNDEFERRED);
}

static void what_is_done_at_once_may_wait_too(void **state)
{
	try_way(have_it_done_at_once, WAIT);
	try_way(have_it_done_at_once, GROUP_WAIT);
	try_way(have_it_done_at_once, WAIT_FOR);
	try_way(have_it_done_at_once, UNDEFERRED);
	try_way(have_it_done_at_once, YIELD);
}

KTEST_MAIN(KTEST(nodes_are_done), KTEST(children_are_done),
	   KTEST(groups_are_done), KTEST(data_is_ready),
	   KTEST(undeferred_tasks_begin), KTEST(yields_have_it_done),
	   KTEST(others_are_not_taken_for_it),
	   KTEST(what_is_done_at_once_may_wait_too))
