/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread does its part of the loops that it calls, all of them if no worker can:
 * where chunks by their functions are known to be brief.  Long ones, and what ktrt_run() is
 * given, are done by workers.  So is the rest of a loop whose chunks turn long, or whose thread
 * is moved to a CPU that is not the core which it visits.
 */
#include "support/blocked_worker.h"

#define INDICES 4000ul
/* No such chunk is brief. */
#define LONG_NS 100000

/* ---- loops ---- */

static int do_range(size_t first, size_t end, void *arg)
{
	for (; first < end; first++)
		count_done();
	return 0;
}

static int add_range(size_t first, size_t end, void *value, void *arg)
{
	for (size_t i = first; i < end; i++)
		*(unsigned long *)value += i;
	return do_range(first, end, arg);
}

static int add_both(void *into, void *from, void *arg)
{
	*(unsigned long *)into += *(unsigned long *)from;
	return 0;
}

static void spend_long(void)
{
	uint64_t until = ktest_now_ns() + LONG_NS;

	while (ktest_now_ns() < until)
		;
}

static int do_long_range(size_t first, size_t end, void *arg)
{
	spend_long();
	return do_range(first, end, arg);
}

static void do_loop(size_t grain)
{
	assert_int_equal(ktrt_for(0, INDICES, grain, do_range, NULL), 0);
}

static void reduce_by(ktrt_reduce_func add, size_t grain)
{
	unsigned long sum = 0;

	assert_int_equal(ktrt_reduce(0, INDICES, grain, add, add_both, &sum,
				     sizeof(sum), NULL),
			 0);
	assert_int_equal(sum, INDICES * (INDICES - 1) / 2);
}

static void do_reduction(size_t grain)
{
	reduce_by(add_range, grain);
}

/* As func_kinds.h names a function of loops. */
#define LOOP_FUNC(func) ((ktrt_func)(void (*)(void))(func))

/* The worker does it until it is known that the function is brief.  Return: false if it is
 * not. */
static bool let_be_known(ktrt_func func, void (*run)(size_t), size_t grain)
{
	uint64_t late_ns = ktest_now_ns() + LATE_NS;

	do
		run(grain);
	while (func_kind(func) != FUNC_BRIEF && ktest_now_ns() < late_ns);
	return func_kind(func) == FUNC_BRIEF;
}

static bool do_loop_here(ktrt_func func, void (*run)(size_t), size_t grain,
			 unsigned long wanted)
{
	for (int i = 0; i < TRIES && let_be_known(func, run, grain); i++) {
		block_the_worker(func, free_worker_if_late);
		run(grain);
		if (check_all_here(wanted))
			return true;
	}
	return false;
}

static const unsigned all_flags[] = { 0, KTRT_NO_UMT, KTRT_UMT_FIRST,
				      KTRT_NO_UMT | KTRT_UNBOUND };

static void do_without_worker(ktrt_func func, void (*run)(size_t),
			      unsigned long wanted)
{
	bool are_brief = true;

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(all_flags) && are_brief; i++) {
		start_with_one(all_flags[i]);
		for (size_t grain = 0; grain < 3 && are_brief; grain++)
			are_brief = do_loop_here(func, run, grain, wanted);
		stop_with_one();
	}
	if (!are_brief)
		ktest_skip("chunks take too long on a machine this busy");
}

static void loops_need_no_worker(void **state)
{
	do_without_worker(LOOP_FUNC(do_range), do_loop, INDICES);
}

static void reductions_need_no_worker(void **state)
{
	do_without_worker(LOOP_FUNC(add_range), do_reduction, INDICES);
}

/* ---- what workers do ---- */

static int refuse_here(void *arg)
{
	return pthread_equal(pthread_self(), attached_thread) ? -EIO : 0;
}

/* The first ones are not known yet. */
static void long_ones_are_for_workers(void **state)
{
	start_with_one(KTRT_NO_UMT);
	set(nr_here, 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(ktrt_for(0, 50, i % 2, do_long_range, NULL),
				 0);
	}
	assert_int_equal(get(nr_here), 0);
	stop_with_one();
}

static void runs_are_by_workers(void **state)
{
	start_with_one(KTRT_NO_UMT);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(ktrt_run(refuse_here, NULL), 0);
	stop_with_one();
}

/* ---- what it leaves in the middle of a loop ---- */

/* After so many chunks something changes; it may do so many more. */
#define CHANGED 100ul
#define LEFT_AFTER 24ul

static struct worker *visitor;
static bool changes, turns_long;
static unsigned long chunks_here;
static const uint32_t no_cpu = UINT32_MAX;

static void change_here(void)
{
	if (!changes || !pthread_equal(pthread_self(), attached_thread) ||
	    more(chunks_here) < CHANGED)
		return;
	if (turns_long)
		spend_long();
	else
		at_poke(&visitor->on_cpu, &no_cpu);
}

static int do_changing(size_t first, size_t end, void *arg)
{
	change_here();
	return do_range(first, end, arg);
}

static int add_changing(size_t first, size_t end, void *value, void *arg)
{
	change_here();
	return add_range(first, end, value, arg);
}

static void do_changing_loop(size_t grain)
{
	assert_int_equal(ktrt_for(0, INDICES, grain, do_changing, NULL), 0);
}

static void do_changing_reduction(size_t grain)
{
	reduce_by(add_changing, grain);
}

static void *free_worker_if_left(void *arg)
{
	ktest_check(holds_soon(get(is_over) || get(chunks_here) >= CHANGED ||
			       func_kind(watched_func) == FUNC_LONG));
	ktest_check(holds_soon(get(is_over) || at_load(&visitor->awaited)));
	ktest_check(write(pipe_ends[1], "x", 1) == 1);
	return NULL;
}

/* Return: false if the function counted as long too soon. */
static bool change_in_loop(ktrt_func func, void (*run)(size_t), size_t grain)
{
	const uint32_t *on_cpu = visitor->on_cpu;

	set(chunks_here, 0);
	block_the_worker(func, free_worker_if_left);
	changes = true;
	run(grain);
	changes = false;
	at_poke(&visitor->on_cpu, on_cpu);
	set(is_over, 1);
	assert_int_equal(pthread_join(watching_thread, NULL), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(nr_done), INDICES);
	assert_in_range(get(chunks_here), 0, CHANGED + LEFT_AFTER);
	return get(chunks_here) >= CHANGED;
}

static bool change_in_time(ktrt_func func, void (*run)(size_t), size_t grain)
{
	for (int i = 0; i < TRIES && let_be_known(func, run, grain); i++)
		if (change_in_loop(func, run, grain))
			return true;
	return false;
}

static void change_each(bool to_long)
{
	bool are_brief = true;

	turns_long = to_long;
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(all_flags) && are_brief; i++) {
		start_with_one(all_flags[i]);
		visitor = self_worker;
		for (size_t grain = 1; grain < 3 && are_brief; grain++)
			are_brief =
				change_in_time(LOOP_FUNC(do_changing),
					       do_changing_loop, grain) &&
				change_in_time(LOOP_FUNC(add_changing),
					       do_changing_reduction, grain);
		stop_with_one();
	}
	if (!are_brief)
		ktest_skip("chunks take too long on a machine this busy");
}

static void what_turns_long_is_left(void **state)
{
	change_each(true);
}

static void rest_is_left_on_another_cpu(void **state)
{
	change_each(false);
}

/* ---- many at a time ---- */

#define THREADS 4
#define ROUNDS 20

static int loop_in_loop(size_t first, size_t end, void *arg)
{
	int error = 0;

	for (; first < end && !error; first++)
		error = ktrt_for(0, 10, first % 2, do_range, NULL);
	return error;
}

static void *take_part(void *arg)
{
	ktest_check(!ktrt_attach());
	for (int i = 0; i < ROUNDS; i++) {
		unsigned long sum = 0;

		ktest_check(!ktrt_for(0, 1000, (size_t)i % 3, do_range, NULL));
		ktest_check(!ktrt_for(0, 30, 0, loop_in_loop, NULL));
		ktest_check(!ktrt_reduce(0, 100, 1, add_range, add_both, &sum,
					 sizeof(sum), NULL));
		ktest_check(sum == 4950);
	}
	ktest_check(!ktrt_detach());
	return NULL;
}

static void several_take_part(void)
{
	pthread_t threads[THREADS];

	set(nr_done, 0);
	for (intptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, take_part, (void *)i),
			0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(get(nr_done), THREADS * ROUNDS * (1000ul + 300 + 100));
}

static void several_threads_take_part(void **state)
{
	in_each_way(several_take_part);
}

/* The others stay on one CPU, and so do runtimes that begin there. */
KTEST_MAIN(KTEST(several_threads_take_part), KTEST(loops_need_no_worker),
	   KTEST(reductions_need_no_worker), KTEST(long_ones_are_for_workers),
	   KTEST(runs_are_by_workers), KTEST(what_turns_long_is_left),
	   KTEST(rest_is_left_on_another_cpu))
