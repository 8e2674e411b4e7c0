/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread does a task, in the call that makes it or because it waits in one.  While
 * that lasts, the only worker, which waits for it, takes no task that may wait for what is on
 * its stack.  If the thread only yields until a task is done that nobody can begin, that is
 * done.
 */
#include "support/attached_thread.h"

/* So many in a row would be enough for the worker to take any task. */
#define STALLS 10

/* What the attached thread does. */
enum { CALLED, TAKEN, NR_KINDS };

static pthread_t attached;
static unsigned kind, begun, nr_waited, below_done;
static struct ktrt_group *awaited;
static char inner, outer;

static int spawn_with(ktrt_func func, void *arg, void *datum, unsigned mode,
		      unsigned flags, struct ktrt_group *group)
{
	const struct ktrt_dep dep = { datum, 0, mode };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.flags = flags;
	attr.group = group;
	return ktrt_spawn_attr(func, arg, &attr);
}

/* ---- the attached thread's tasks ---- */

/* For as long as that takes the leader finds that no task begins. */
static void outlast_stalls(void)
{
	uint32_t before = at_load(&rt.stalls);

	ktest_check(pthread_equal(pthread_self(), attached));
	ktest_check(!self_worker->core);
	ktest_check(holds_soon(at_load(&rt.stalls) - before >= STALLS));
	more(nr_waited);
}

static int be_taken(void *arg)
{
	set(begun, 2);
	outlast_stalls();
	return 0;
}

static const ktrt_func taken = be_taken;

/* The thread takes the child itself while it waits for the data. */
static int wait_for_taken(void *arg)
{
	const struct ktrt_dep dep = { &inner, 0, KTRT_IN };

	ktest_check(!spawn_with(call_briefly, (void *)&taken, &inner, KTRT_OUT,
				0, awaited));
	return ktrt_wait_for(&dep, 1);
}

static int be_called(void *arg)
{
	set(begun, 2);
	outlast_stalls();
	return 0;
}

/* ---- the worker's tasks ---- */

static int wait_for_attached(void *arg)
{
	set(begun, 1);
	ktest_check(holds_soon(get(begun) == 2));
	ktest_check(!ktrt_group_wait(awaited));
	return 0;
}

static int note_below(void *arg)
{
	set(below_done, 1);
	return 0;
}

/* It waits for a child, and that for the task that waits for the attached thread. */
static int wait_for_waiting(void *arg)
{
	ktest_check(get(nr_waited));
	ktest_check(!spawn_with(note_below, NULL, &outer, KTRT_INOUT, 0, NULL));
	return ktrt_wait();
}

/* ---- tests ---- */

static void start_runtime(unsigned flags)
{
	attached = pthread_self();
	start_with_one_worker(flags);
	ktest_check(!ktrt_group_new(&awaited));
}

static void stop_runtime(void)
{
	ktrt_group_free(awaited);
	ktest_check(!ktrt_stop());
}

static int have_worker_wait(void *arg)
{
	start_runtime((unsigned)(uintptr_t)arg);
	ktest_check(!spawn_with(wait_for_attached, NULL, &outer, KTRT_OUT, 0,
				NULL));
	ktest_check(holds_soon(get(begun)));
	ktest_check(!spawn_with(wait_for_waiting, NULL, &outer,
				KTRT_INOUT | KTRT_WEAK, 0, NULL));
	ktest_check(!spawn_with(kind == TAKEN ? wait_for_taken : be_called,
				NULL, &inner, KTRT_INOUT, KTRT_UNDEFERRED,
				kind == TAKEN ? NULL : awaited));
	ktest_check(!ktrt_wait());
	ktest_check(get(nr_waited) == 1 && get(below_done));
	stop_runtime();
	return 0;
}

static void try_each_way(ktrt_func test, unsigned nr_kinds)
{
	const unsigned flags[] = { KTRT_NO_UMT, KTRT_UMT_FIRST };

	for (kind = 0; kind < nr_kinds; kind++)
		for (size_t i = 0; i < KTEST_ARRAY_SIZE(flags); i++)
			assert_int_equal(
				ktest_in_child(test,
					       (void *)(uintptr_t)flags[i]),
				0);
}

static void workers_wait_for_their_end(void **state)
{
	try_each_way(have_worker_wait, NR_KINDS);
}

/* ---- if the thread yields instead ---- */

static int end_yields(void *arg)
{
	set(below_done, 1);
	return 0;
}

static const ktrt_func ends_yields = end_yields;

static int yield_until_done(void *arg)
{
	set(begun, 2);
	while (!get(below_done))
		ktest_check(!ktrt_yield());
	return 0;
}

/* What is done by way of ktrt_dispatch() is never brief, so only the worker may do it. */
static int have_it_yield(void *arg)
{
	start_runtime((unsigned)(uintptr_t)arg);
	ktest_check(!ktrt_spawn(wait_for_attached, NULL));
	ktest_check(holds_soon(get(begun)));
	ktest_check(!ktrt_spawn(kind ? ktrt_dispatch : call_briefly,
				(void *)&ends_yields));
	ktest_check(!spawn_with(yield_until_done, NULL, &inner, KTRT_OUT,
				KTRT_UNDEFERRED, awaited));
	ktest_check(!ktrt_wait());
	stop_runtime();
	return 0;
}

static void yields_do_not_count(void **state)
{
	try_each_way(have_it_yield, 2);
}

KTEST_MAIN(KTEST(workers_wait_for_their_end), KTEST(yields_do_not_count))
