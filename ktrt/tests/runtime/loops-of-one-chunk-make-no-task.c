/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * In the middle of a task a loop that is one chunk is done on the spot and makes no task: if the
 * caller's grain says so, or if the function was brief so far and the loop turns out to be.
 * Whatever the function does, the loop ends as others do.
 */
#include "support/runs.h"

#include <pthread.h>

#include "runtime/func_kinds.h"

/* So few that they are brief on a slow machine, too, and with sanitizers: a function is if
 * all of them seem to take less than CHUNK_NS (task_loop.c), 1.4 us an index. */
#define INDICES 14
#define LOOPS 200
/* Reading some clocks, as hpet, takes longer than that by itself. */
#define CLOCK_NS 700
#define LOOP_FUNC(func) ((ktrt_func)(void (*)(void))(func))

static unsigned hits[INDICES], calls;

static int hit_each(size_t first, size_t end, void *arg)
{
	more(calls);
	for (; first < end; first++)
		more(hits[first]);
	return 0;
}

static int add_each(size_t first, size_t end, void *value, void *arg)
{
	more(calls);
	for (; first < end; first++)
		*(size_t *)value += first;
	return 0;
}

static int add_both(void *into, void *from, void *arg)
{
	*(size_t *)into += *(size_t *)from;
	return 0;
}

/* Does a loop of each kind in a task; how many tasks its worker did meanwhile. */
struct loops {
	size_t grain;
	bool reduces;
	uint64_t nr_tasks;
};

static int do_one_loop(struct loops *loops)
{
	size_t sum = 0;
	int code;

	if (!loops->reduces)
		return ktrt_for(0, INDICES, loops->grain, hit_each, NULL);
	code = ktrt_reduce(0, INDICES, loops->grain, add_each, add_both, &sum,
			   sizeof(sum), NULL);
	return code || sum == INDICES * (INDICES - 1) / 2 ? code : -EIO;
}

static int count_tasks_of_loop(void *arg)
{
	const struct worker *w = self_worker;
	uint64_t before = at_peek(&w->counts.tasks);
	struct loops *loops = arg;
	int code;

	code = do_one_loop(loops);
	if (self_worker != w)
		return -EIO;
	loops->nr_tasks = at_peek(&w->counts.tasks) - before;
	return code;
}

static void grains_of_the_caller(void)
{
	for (int i = 0; i < LOOPS; i++) {
		struct loops loops = { INDICES + (size_t)i % 2, i % 4 > 1, 1 };

		set(calls, 0);
		assert_int_equal(ktrt_run(count_tasks_of_loop, &loops), 0);
		assert_int_equal(loops.nr_tasks, 0);
		assert_int_equal(get(calls), 1);
	}
}

static void no_task_for_as_many_as_the_grain(void **state)
{
	in_each_way(grains_of_the_caller);
}

/* The kernel may interrupt any of them, but not all. */
static void measured_grains(void)
{
	unsigned without = 0;

	for (int i = 0; i < LOOPS; i++) {
		struct loops loops = { 0, i % 2, 1 };

		func_classify(LOOP_FUNC(hit_each), true);
		func_classify(LOOP_FUNC(add_each), true);
		memset(hits, 0, sizeof(hits));
		assert_int_equal(ktrt_run(count_tasks_of_loop, &loops), 0);
		without += !loops.nr_tasks;
		for (size_t at = 0; at < INDICES && !loops.reduces; at++)
			assert_int_equal(get(hits[at]), 1);
	}
	assert_true(without > 0);
}

static void no_task_for_what_is_brief(void **state)
{
	if (clock_step_ns() > CLOCK_NS)
		ktest_skip("reading the clock takes as long as what is timed");
	in_each_way(measured_grains);
}

/* One index is one part.  Nothing is known of the function, since it is long. */
static int nap_each(size_t first, size_t end, void *arg)
{
	const struct worker *w = arg;

	nap_us(100);
	return self_worker == w ? 0 : -EIO;
}

static int count_wakeups_of_loop(void *arg)
{
	struct worker *w = self_worker;
	uint64_t before;
	int code;

	/* A worker that searches would take what is queued, so that none is woken. */
	for (int i = 0; i < 20 && at_load(&rt.idlers) != rt.nr_cores - 1; i++)
		nap_us(1000);
	before = at_peek(&w->counts.wakeups);
	code = ktrt_for(0, 1, 0, nap_each, w);
	*(uint64_t *)arg = at_peek(&w->counts.wakeups) - before;
	return code;
}

static void begin_loops(void)
{
	uint64_t nr_wakeups = 1;

	for (int i = 0; i < 20; i++) {
		assert_int_equal(ktrt_run(count_wakeups_of_loop, &nr_wakeups),
				 0);
		assert_int_equal(nr_wakeups, 0);
	}
}

static void a_worker_begins_its_loops_itself(void **state)
{
	in_each_way(begin_loops);
}

/* ---- longer than it seemed ---- */

static int turn_long(size_t first, size_t end, void *arg)
{
	for (; first < end; first++) {
		more(hits[first]);
		if (first >= *(size_t *)arg)
			nap_us(20);
	}
	return 0;
}

static int sum_slowly(size_t first, size_t end, void *value, void *arg)
{
	for (; first < end; first++) {
		*(size_t *)value += first;
		if (first >= *(size_t *)arg)
			nap_us(20);
	}
	return 0;
}

static int loop_that_turns_long(void *arg)
{
	size_t sum = 0;
	int code;

	memset(hits, 0, sizeof(hits));
	func_classify(LOOP_FUNC(turn_long), true);
	code = ktrt_for(0, INDICES, 0, turn_long, arg);
	for (int i = 0; i < INDICES; i++)
		if (get(hits[i]) != 1)
			return -EIO;
	func_classify(LOOP_FUNC(sum_slowly), true);
	if (!code)
		code = ktrt_reduce(0, INDICES, 0, sum_slowly, add_both, &sum,
				   sizeof(sum), arg);
	return code || sum == INDICES * (INDICES - 1) / 2 ? code : -EIO;
}

static void long_rests(void)
{
	for (size_t at = 0; at < INDICES; at++)
		assert_int_equal(ktrt_run(loop_that_turns_long, &at), 0);
}

static void each_index_is_done_once_if_it_takes_longer(void **state)
{
	in_each_way(long_rests);
}

/* ---- what a chunk may do ---- */

static int make_no_difference(void *arg)
{
	more(calls);
	return 0;
}

static int fail_task(void *arg)
{
	more(calls);
	return 66;
}

enum deed { MAKES, MAKES_FAILING, FAILS, ADDS_EVENTS, LOOPS_WITHIN, NR_DEEDS };

static void *end_event(void *arg)
{
	nap_us(1000);
	more(calls);
	ktrt_events_done(arg, 1);
	return NULL;
}

static int add_event(void)
{
	pthread_t thread;
	int error = ktrt_events_add(1);

	if (!error)
		error = -pthread_create(&thread, NULL, end_event, ktrt_self());
	if (!error)
		error = -pthread_detach(thread);
	return error;
}

static int do_deed(size_t first, size_t end, void *arg)
{
	int error = 0;

	switch (*(enum deed *)arg) {
	case MAKES:
		for (int i = 0; i < 3 && !error; i++)
			error = ktrt_spawn(make_no_difference, NULL);
		break;
	case MAKES_FAILING:
		error = ktrt_spawn(fail_task, NULL);
		break;
	case FAILS:
		error = 55;
		break;
	case ADDS_EVENTS:
		error = add_event();
		break;
	default:
		error = ktrt_for(0, INDICES, INDICES, hit_each, NULL);
		break;
	}
	return error;
}

static const struct {
	int code;
	unsigned calls;
} wanted[NR_DEEDS] = { { 0, 3 }, { 66, 1 }, { 55, 0 }, { 0, 1 }, { 0, 1 } };

/* It waits for what the loop made, and for no other child. */
static int do_deed_in_task(void *arg)
{
	static unsigned gate;
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &gate, 0, KTRT_OUT };
	enum deed deed = *(enum deed *)arg;
	struct ktrt_task *self = ktrt_self();

	attr.deps = &dep;
	attr.nr_deps = 1;
	/* Something that is complete only after the loop. */
	if (ktrt_spawn_attr(make_no_difference, NULL, &attr) || ktrt_wait())
		return -ENOMEM;
	set(calls, 0);
	if (ktrt_for(3, 4, 1, do_deed, arg) != wanted[deed].code)
		return -EIO;
	if (get(calls) != wanted[deed].calls || ktrt_self() != self)
		return -EDOM;
	return ktrt_wait();
}

static void deeds_of_chunks(void)
{
	for (int i = 0; i < 10 * NR_DEEDS; i++) {
		enum deed deed = i % NR_DEEDS;

		assert_int_equal(ktrt_run(do_deed_in_task, &deed), 0);
	}
}

static void chunks_may_do_what_tasks_may(void **state)
{
	in_each_way(deeds_of_chunks);
}

static struct ktrt_group *group;

static int cancel_all(size_t first, size_t end, void *arg)
{
	more(calls);
	ktrt_group_cancel(group);
	return 0;
}

/* After it no loop begins. */
static int loop_and_cancel(void *arg)
{
	if (ktrt_for(0, 1, 1, cancel_all, NULL) ||
	    ktrt_for(0, 1, 1, cancel_all, NULL) != -ECANCELED)
		return -EIO;
	func_classify(LOOP_FUNC(cancel_all), true);
	return ktrt_for(0, 1, 0, cancel_all, NULL) == -ECANCELED ? 0 : -EIO;
}

static void cancel_loops(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	assert_int_equal(ktrt_group_new(&group), 0);
	attr.group = group;
	set(calls, 0);
	assert_int_equal(ktrt_spawn_attr(loop_and_cancel, NULL, &attr), 0);
	assert_int_equal(ktrt_group_wait(group), 0);
	assert_int_equal(get(calls), 1);
	ktrt_group_free(group);
}

static void what_is_cancelled_does_not_begin(void **state)
{
	in_each_way(cancel_loops);
}

static int leave_chunk(size_t first, size_t end, void *arg)
{
	(void)ktrt_spawn(make_no_difference, NULL);
	pthread_exit(NULL);
}

static int leave_in_loop(void *arg)
{
	ktrt_for(0, 1, 1, leave_chunk, NULL);
	return 0;
}

static void leave_loops(void)
{
	set(calls, 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ktrt_run(leave_in_loop, NULL), -ECANCELED);
	assert_int_equal(get(calls), 20);
}

static void threads_may_end_in_chunks(void **state)
{
	in_each_way(leave_loops);
}

static int make_final_ones(size_t first, size_t end, void *arg)
{
	set(calls, 0);
	if (ktrt_spawn(make_no_difference, NULL) || !ktrt_in_final())
		return -EIO;
	return get(calls) == 1 ? 0 : -EDOM;
}

static int loop_in_final(void *arg)
{
	return ktrt_for(0, 1, 1, make_final_ones, NULL);
}

static void final_tasks_loop(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.flags = KTRT_FINAL;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(ktrt_spawn_attr(loop_in_final, NULL, &attr),
				 0);
		assert_int_equal(ktrt_wait(), 0);
	}
}

static void tasks_below_final_ones_are_final(void **state)
{
	in_each_way(final_tasks_loop);
}

KTEST_MAIN(KTEST(no_task_for_as_many_as_the_grain),
	   KTEST(no_task_for_what_is_brief),
	   KTEST(a_worker_begins_its_loops_itself),
	   KTEST(each_index_is_done_once_if_it_takes_longer),
	   KTEST(chunks_may_do_what_tasks_may),
	   KTEST(what_is_cancelled_does_not_begin),
	   KTEST(threads_may_end_in_chunks),
	   KTEST(tasks_below_final_ones_are_final))
