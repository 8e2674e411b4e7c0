/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What tasks return goes to whoever waits for them: the parent, its parent, a
 * group; of several codes the first one.  Groups are waited for and cancelled; wrong
 * calls are refused.
 */
#include "support/runs.h"

#include <pthread.h>

static unsigned long ran;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static int fail_with(void *arg)
{
	return (int)(intptr_t)arg;
}

static int fail_below(void *arg)
{
	return ktrt_spawn(fail_with, arg);
}

static int catch_below(void *arg)
{
	if (ktrt_spawn(fail_with, arg) || ktrt_wait() != (int)(intptr_t)arg)
		return -EIO;
	return ktrt_wait();
}

static void codes_reach_parents(void)
{
	assert_int_equal(ktrt_spawn(fail_with, (void *)7), 0);
	assert_int_equal(ktrt_wait(), 7);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ktrt_spawn(fail_below, (void *)8), 0);
	assert_int_equal(ktrt_wait(), 8);
	assert_int_equal(ktrt_spawn(catch_below, (void *)9), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ktrt_run(fail_with, (void *)10), 10);
	assert_int_equal(ktrt_run(fail_below, (void *)11), 11);
	assert_int_equal(ktrt_wait(), 0);
}

static unsigned gate;

static int spawn_with(ktrt_func func, intptr_t arg, const void *writes,
		      struct ktrt_group *group, unsigned flags)
{
	const struct ktrt_dep dep = { writes, 0, KTRT_OUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = writes ? 1 : 0;
	attr.group = group;
	attr.flags = flags;
	return ktrt_spawn_attr(func, (void *)arg, &attr);
}

/* It fails because a child did, for which it does not wait. */
static int fail_after_child(void *arg)
{
	static char datum;
	const struct ktrt_dep dep = { &datum, 0, KTRT_IN };

	if (spawn_with(fail_with, 21, &datum, NULL, 0))
		return -EIO;
	return ktrt_wait_for(&dep, 1) == -ECANCELED ? 22 : -EIO;
}

static int fail_at_gate(void *arg)
{
	return holds_soon(get(gate)) ? (int)(intptr_t)arg : -EIO;
}

static int fail_before_child(void *arg)
{
	return ktrt_spawn(fail_at_gate, (void *)24) ? -EIO : 23;
}

/* The function of an undeferred task has returned when the call does. */
static void first_codes_of_tasks_count(void)
{
	struct ktrt_group *group;

	assert_int_equal(ktrt_spawn(fail_after_child, NULL), 0);
	assert_int_equal(ktrt_wait(), 21);
	assert_int_equal(ktrt_run(fail_after_child, NULL), 21);
	set(gate, 0);
	assert_int_equal(
		spawn_with(fail_before_child, 0, NULL, NULL, KTRT_UNDEFERRED),
		0);
	set(gate, 1);
	assert_int_equal(ktrt_wait(), 23);
	/* Of several tasks that of the one which is complete first. */
	assert_int_equal(ktrt_group_new(&group), 0);
	set(gate, 0);
	assert_int_equal(
		spawn_with(fail_before_child, 0, NULL, group, KTRT_UNDEFERRED),
		0);
	assert_int_equal(
		spawn_with(fail_with, 25, NULL, group, KTRT_UNDEFERRED), 0);
	set(gate, 1);
	assert_int_equal(ktrt_group_wait(group), 25);
	ktrt_group_free(group);
	assert_int_equal(ktrt_wait(), 0);
}

static int wait_at_gate(void *arg)
{
	while (!get(gate)) {
		if (ktrt_cancelled())
			return -EINTR;
		ktrt_yield();
	}
	return 0;
}

static void groups_are_cancelled(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &gate, 0, KTRT_INOUT };
	int code;

	set(gate, 0);
	set(ran, 0);
	assert_int_equal(ktrt_group_new(&attr.group), 0);
	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_spawn_attr(wait_at_gate, NULL, &attr), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
	attr.flags = KTRT_ALWAYS;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
	ktrt_group_cancel(attr.group);
	code = ktrt_group_wait(attr.group);
	assert_true(code == -EINTR || code == -ECANCELED);
	assert_int_equal(get(ran), 1);
	assert_int_equal(ktrt_wait(), 0);
	ktrt_group_free(attr.group);

	attr.group = NULL;
	attr.flags = 0;
	set(gate, 1);
	assert_int_equal(ktrt_spawn_attr(wait_at_gate, NULL, &attr), 0);
	assert_int_equal(ktrt_wait(), 0);
}

static void *finish_events(void *arg)
{
	nap_us(2000);
	ktrt_events_done(arg, 3);
	return NULL;
}

static int add_events(void *arg)
{
	pthread_t thread;

	if (ktrt_events_add(3) || ktrt_events_add(70000) != -EINVAL)
		return -EIO;
	if (pthread_create(&thread, NULL, finish_events, ktrt_self()))
		return -EIO;
	pthread_detach(thread);
	return 0;
}

static void events_put_completion_off(void)
{
	struct ktrt_dep dep = { &gate, 0, KTRT_INOUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	set(ran, 0);
	assert_int_equal(ktrt_spawn_attr(add_events, NULL, &attr), 0);
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(ran), 1);
}

static void *attach_guest(void *arg)
{
	intptr_t wrong = ktrt_spawn(count_task, NULL) != -ESRCH;

	wrong += ktrt_attach() != 0;
	wrong += ktrt_attach() != -EEXIST;
	for (int i = 0; i < 1000; i++)
		wrong += ktrt_spawn(count_task, NULL) != 0;
	wrong += ktrt_spawn(fail_with, (void *)5) != 0;
	wrong += ktrt_detach() != 5;
	wrong += ktrt_detach() != -ESRCH;
	wrong += ktrt_run(fail_with, (void *)6) != 6;
	return (void *)wrong;
}

static void guests_make_tasks(void)
{
	pthread_t threads[4];
	void *wrong;

	set(ran, 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, attach_guest, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(get(ran), 4000);
}

static int order[64];
static unsigned nr_order;

static int note_order(void *arg)
{
	order[__atomic_fetch_add(&nr_order, 1, __ATOMIC_SEQ_CST)] =
		(int)(intptr_t)arg;
	return 0;
}

static int spawn_prioritized(struct ktrt_attr *attr)
{
	int error = 0;

	for (int i = 0; i < 64 && !error; i++) {
		attr->priority = (i * 37) % 64 - 32;
		error = ktrt_spawn_attr(note_order,
					(void *)(intptr_t)attr->priority, attr);
	}
	return error;
}

static int make_prioritized(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int error = spawn_prioritized(&attr);

	return error ? error : ktrt_wait();
}

static struct ktrt_task *held;
static int released;

static int hold_task(void *arg)
{
	set(held, ktrt_self());
	return ktrt_events_add(1);
}

/* By a thread of which the runtime knows nothing. */
static void *release_task(void *arg)
{
	ktrt_events_done(held, 1);
	set(released, 1);
	return NULL;
}

/* All wait for one datum; the worker is busy until the last one is ready. */
static int make_prioritized_that_wait(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &held, 0, KTRT_OUT };
	uint64_t end = ktest_now_ns() + 20000000000;
	pthread_t thread;
	int error;

	attr.deps = &dep;
	attr.nr_deps = 1;
	error = ktrt_spawn_attr(hold_task, NULL, &attr);
	if (!error)
		error = ktrt_yield();
	if (error || !held)
		return -EIO;
	dep.mode = KTRT_IN;
	error = spawn_prioritized(&attr);
	if (error || pthread_create(&thread, NULL, release_task, NULL))
		return -EIO;
	while (!get(released) && ktest_now_ns() < end)
		;
	error = ktrt_wait();
	pthread_join(thread, NULL);
	return error;
}

/* With one worker, which makes them all before it takes any.  Were there more
 * threads another would take some while this one waits for a page. */
static void higher_priorities_run_first(void **state)
{
	static const ktrt_func makers[] = { make_prioritized,
					    make_prioritized_that_wait };
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = 1;
	options.max_threads = 1;
	options.flags = KTRT_NO_UMT;
	for (size_t maker = 0; maker < KTEST_ARRAY_SIZE(makers); maker++) {
		nr_order = 0;
		assert_int_equal(ktrt_start(&options), 0);
		assert_int_equal(ktrt_run(makers[maker], NULL), 0);
		assert_int_equal(nr_order, 64);
		for (int i = 1; i < 64; i++)
			assert_true(order[i] < order[i - 1]);
		assert_int_equal(ktrt_stop(), 0);
	}
}

/* As many events as a task may have, and one more. */
static int have_all_events(void *arg)
{
	const unsigned most = (1u << 24) - 1;
	int error = 0;

	for (unsigned nr = 0; !error && nr < most; nr += 65535)
		error = ktrt_events_add(most - nr < 65535 ? most - nr : 65535);
	if (!error && ktrt_events_add(1) != -EOVERFLOW)
		error = -EIO;
	ktrt_events_done(ktrt_self(), most);
	return error;
}

static void too_many_events_are_refused(void **state)
{
	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(ktrt_run(have_all_events, NULL), 0);
	assert_int_equal(ktrt_stop(), 0);
}

static void wrong_calls_are_refused(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_dep dep = { &gate, 0, 0 };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_spawn(count_task, NULL), -ESRCH);
	assert_int_equal(ktrt_stop(), -ESRCH);
	options.flags = 1u << 20;
	assert_int_equal(ktrt_start(&options), -EINVAL);
	options.flags = 0;
	options.reserved[1] = 1;
	assert_int_equal(ktrt_start(&options), -EINVAL);
	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(ktrt_start(NULL), -EBUSY);
	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), -EINVAL);
	dep.mode = 4;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), -EINVAL);
	dep.mode = KTRT_IN;
	dep.len = SIZE_MAX;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), -EINVAL);
	dep.len = 0;
	attr.priority = 40000;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), -EINVAL);
	attr.priority = 0;
	attr.struct_size = 3;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), -EINVAL);
	assert_int_equal(ktrt_events_add(1), -ESRCH);
	assert_null(ktrt_self());
	assert_int_equal(ktrt_worker(), -1);
	info.struct_size = 1;
	assert_int_equal(ktrt_info_get(&info), -EINVAL);
	assert_int_equal(ktrt_stop(), 0);
}

static void codes_and_groups(void **state)
{
	in_each_way(codes_reach_parents);
	in_each_way(first_codes_of_tasks_count);
	in_each_way(groups_are_cancelled);
}

static void events_and_guests(void **state)
{
	in_each_way(events_put_completion_off);
	in_each_way(guests_make_tasks);
}

KTEST_MAIN(KTEST(codes_and_groups), KTEST(events_and_guests),
	   KTEST(higher_priorities_run_first),
	   KTEST(too_many_events_are_refused), KTEST(wrong_calls_are_refused))
