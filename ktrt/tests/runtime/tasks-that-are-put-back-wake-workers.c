/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that searches for what it waits for takes tasks and puts them back.  A worker that
 * went to sleep in between has not seen these, and the leader may sleep as well.  So whoever
 * puts a task back wakes a worker.
 */
#include "support/runs.h"

#include "runtime/rt.h"

static unsigned nr_done;

static int count_task(void *arg)
{
	more(nr_done);
	return 0;
}

/* As if all had gone to sleep while somebody had the task in hand. */
static void queue_unseen(struct worker *w)
{
	struct ktrt_task *task = task_new(w, count_task, NULL);

	ktest_check(task);
	w->current->spawned++;
	ktest_check(queue_own(w, task));
}

static bool all_sleep(void)
{
	return at_load(&rt.leader_sleeps) && idle_cores() == rt.nr_cores &&
	       !(at_load(&rt.idlers) >> 32);
}

/* ---- how it searches; the task that it does has no children ---- */

static void take_below(struct worker *w)
{
	ktest_check(!sched_take_below(w, w->current));
}

static void search_once(struct worker *w)
{
	const struct wait_filter filter = filter_for(w->current, NULL);

	ktest_check(!search_wanted(w, &filter));
}

/* As if it visited a core. */
static void search_on_core(struct worker *w)
{
	at_poke(&w->core, &rt.cores[0]);
	search_once(w);
	at_poke(&w->core, NULL);
}

static void search_in_stall(struct worker *w)
{
	at_poke(&w->stalls, at_load(&rt.stalls) - 1);
	search_once(w);
}

static void (*const searches[])(struct worker *w) = { take_below,
						      search_on_core,
						      search_in_stall };

static int search_in_vain(void *search)
{
	(*(void (*const *)(struct worker *))search)(self_worker);
	return holds_soon(get(nr_done)) ? 0 : -ETIMEDOUT;
}

static int check_search(void *search)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	options.workers = options.max_threads = 1;
	options.flags = KTRT_NO_UMT;
	ktest_check(!ktrt_start(&options));
	ktest_check(holds_soon(all_sleep()));
	queue_unseen(self_worker);
	attr.flags = KTRT_UNDEFERRED;
	ktest_check(!ktrt_spawn_attr(search_in_vain, search, &attr));
	ktest_check(!ktrt_wait());
	ktest_check(!ktrt_stop());
	return 0;
}

static void they_do(void **state)
{
	int failed = 0;

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(searches); i++)
		failed += !!ktest_in_child(check_search, (void *)&searches[i]);
	assert_int_equal(failed, 0);
}

KTEST_MAIN(KTEST(they_do))
