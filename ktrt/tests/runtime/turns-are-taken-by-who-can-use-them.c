/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A maker that waits until it may do an undeferred task does other tasks meanwhile where no
 * more threads can be made.  The undeferred task takes its turns at commuting data only when
 * the maker is done with these: they may wait for a task that needs the turn.
 */
#include "support/runs.h"

static char turn, late, weak, early, more_turns;
static unsigned commuted;
static int in_order;

static int do_nothing(void *arg)
{
	return 0;
}

static int count_commuted(void *arg)
{
	more(commuted);
	return 0;
}

static int spawn_using(ktrt_func func, const struct ktrt_dep *deps, size_t nr,
		       unsigned flags)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = nr;
	attr.flags = flags;
	return ktrt_spawn_attr(func, NULL, &attr);
}

static int spawn_one(ktrt_func func, void *addr, unsigned mode)
{
	const struct ktrt_dep dep = { addr, 0, mode };

	return spawn_using(func, &dep, 1, 0);
}

static int see_commuted(void *arg)
{
	set(in_order, get(commuted) >= 1);
	return 0;
}

/* For a task beside this one. */
static int wait_for_weak(void *arg)
{
	ktest_check(!spawn_one(see_commuted, &weak, KTRT_IN));
	return ktrt_wait();
}

/*
 * The newest task is done first: what waits for the second one, which needs a turn, and has
 * nothing to wait for but the first.  The third one is done before that, and the last one,
 * which is undeferred, lacks only the turn then.
 */
static int have_maker_wait(void *arg)
{
	const struct ktrt_dep needs_turn[] = { { &early, 0, KTRT_IN },
					       { &turn, 0, KTRT_COMMUTATIVE },
					       { &weak, 0, KTRT_OUT } };
	const struct ktrt_dep undeferred[] = { { &late, 0, KTRT_IN },
					       { &turn, 0, KTRT_COMMUTATIVE },
					       { &more_turns, 0,
						 KTRT_COMMUTATIVE } };

	ktest_check(!spawn_one(do_nothing, &early, KTRT_OUT));
	ktest_check(!spawn_using(count_commuted, needs_turn, 3, 0));
	ktest_check(!spawn_one(do_nothing, &late, KTRT_OUT));
	ktest_check(!spawn_one(wait_for_weak, &weak, KTRT_WEAK_IN));
	ktest_check(
		!spawn_using(count_commuted, undeferred, 3, KTRT_UNDEFERRED));
	return ktrt_wait();
}

/* The turn is another task's when the undeferred one asks for it. */
static int have_maker_take_turns(void *arg)
{
	const struct ktrt_dep needs_turn[] = { { &turn, 0, KTRT_COMMUTATIVE },
					       { &weak, 0, KTRT_OUT } };
	const struct ktrt_dep dep = { &turn, 0, KTRT_COMMUTATIVE };

	ktest_check(!spawn_using(count_commuted, needs_turn, 2, 0));
	ktest_check(!spawn_using(count_commuted, needs_turn, 2, 0));
	ktest_check(!spawn_one(wait_for_weak, &weak, KTRT_WEAK_IN));
	ktest_check(!spawn_using(count_commuted, &dep, 1, KTRT_UNDEFERRED));
	return ktrt_wait();
}

static ktrt_func wanted;

static int run_it(void *arg)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = options.max_threads = 1;
	options.flags = (unsigned)(uintptr_t)arg;
	ktest_check(!ktrt_start(&options));
	for (unsigned i = 0; i < 20; i++) {
		set(commuted, 0);
		set(in_order, 0);
		ktest_check(!ktrt_run(wanted, NULL));
		ktest_check(get(commuted) >= 2 && get(in_order));
	}
	ktest_check(!ktrt_stop());
	return 0;
}

static void try_with(ktrt_func func)
{
	const unsigned flags[] = { KTRT_NO_UMT, KTRT_UMT_FIRST };

	wanted = func;
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(flags); i++)
		assert_int_equal(
			ktest_in_child(run_it, (void *)(uintptr_t)flags[i]), 0);
}

static void waiting_makers_hold_no_turn(void **state)
{
	try_with(have_maker_wait);
}

static void taken_turns_are_waited_for(void **state)
{
	try_with(have_maker_take_turns);
}

KTEST_MAIN(KTEST(waiting_makers_hold_no_turn),
	   KTEST(taken_turns_are_waited_for))
