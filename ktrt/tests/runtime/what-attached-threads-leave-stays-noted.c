/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread in the middle of a task that may not do what it waits for leaves that
 * to workers, and notes it.  The note stays until one of them takes the task to do it: also
 * if a worker empties the thread's queue while the thread searches once more, and the
 * thread itself never has the task in its hand again.  Nor has another attached thread that
 * waits for the same task: it notes that, too.
 */
#include "support/attached_thread.h"

#include <pthread.h>

#define SEARCHES 3

/* How the attached thread's task waits. */
enum { WAIT, GROUP_WAIT, UNDEFERRED, NR_KINDS };

static pthread_t attached;
static struct worker *visitor;
static struct ktrt_group *awaited;
static unsigned kind, begun, left_done, helped;
static char inner;

/* ---- what is left ---- */

static int do_left(void *arg)
{
	ktest_check(!pthread_equal(pthread_self(), attached));
	set(left_done, 1);
	return 0;
}

static const ktrt_func left_func = do_left;

/* Functions that are called so never count as brief. */
static int spawn_left(struct ktrt_group *group)
{
	const struct ktrt_dep dep = { &inner, 0, KTRT_OUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.arg_bytes = sizeof(left_func);
	attr.group = group;
	attr.deps = &dep;
	attr.nr_deps = 1;
	return ktrt_spawn_attr(ktrt_dispatch, (void *)&left_func, &attr);
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
	ktest_check(!spawn_left(group));
	ktest_check(!ktrt_group_wait(group));
	ktrt_group_free(group);
}

static void spawn_undeferred(void)
{
	const struct ktrt_dep dep = { &inner, 0, KTRT_IN };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.flags = KTRT_UNDEFERRED;
	attr.deps = &dep;
	attr.nr_deps = 1;
	ktest_check(!spawn_left(NULL));
	ktest_check(!ktrt_spawn_attr(do_nothing, NULL, &attr));
}

static int wait_once(void *arg)
{
	ktest_check(pthread_equal(pthread_self(), attached));
	if (kind == GROUP_WAIT) {
		wait_for_group();
	} else if (kind == UNDEFERRED) {
		spawn_undeferred();
	} else {
		ktest_check(!spawn_left(NULL));
		ktest_check(!ktrt_wait());
	}
	ktest_check(get(left_done));
	set(helped, 1);
	return 0;
}

static const ktrt_func once = wait_once;

/* ---- the only worker's task ---- */

/* The signal for which the attached thread sleeps, or NULL. */
static uint32_t *find_signal(void)
{
	uint32_t *signal = at_load(&visitor->awaited);

	return signal && !signal_given(signal) ? signal : NULL;
}

/* As in a stall; afterwards it has searched and sleeps again. */
static void have_it_search(void)
{
	uint32_t *signal;

	ktest_check(holds_soon((signal = find_signal())));
	signal_give(signal);
	ktest_check(holds_soon(find_signal()));
}

static void empty_its_queue(void)
{
	struct ktrt_task *task = deque_steal(&visitor->deque, NULL, NULL);

	have_it_search();
	if (task)
		node_queue_put(&rt.node_queues[0], task);
}

static void search_without_queues(void)
{
	mutex_take(&rt.node_queues[0].lock, RANK_INNER);
	have_it_search();
	mutex_drop(&rt.node_queues[0].lock, RANK_INNER);
}

/* In any way in which an attached thread searches node queues. */
static void search_in_vain(struct worker *w, const struct ktrt_task *left)
{
	const struct wait_filter any = { w->current, NULL, w->current, true,
					 false };
	struct node_queue *queue = &rt.node_queues[0];
	struct ktrt_task *parent = at_peek(&left->parent);

	ktest_check(!node_queue_take_wanted(queue, &any));
	ktest_check(!node_queue_take_below(queue, parent));
	ktest_check(!node_queue_take_in(queue, parent, left->group));
	ktest_check(get(left->left_by) == visitor->slot + 1);
}

static void *search_too(void *arg)
{
	const struct ktrt_task *left = arg;
	struct worker *w;

	ktest_check(!ktrt_attach());
	w = self_worker;
	search_in_vain(w, left);
	ktest_check(!get(w->left));
	/* As if it visited a core. */
	at_poke(&w->core, &rt.cores[0]);
	search_in_vain(w, left);
	ktest_check(get(w->left) == left && visit_has_left(w));
	at_poke(&w->core, NULL);
	visit_forget(w);
	ktest_check(!ktrt_detach());
	return NULL;
}

static void have_another_search(const struct ktrt_task *left)
{
	pthread_t thread;

	ktest_check(!pthread_create(&thread, NULL, search_too, (void *)left));
	ktest_check(!pthread_join(thread, NULL));
}

static int search_like_others(void *arg)
{
	const struct ktrt_task *left;

	set(begun, 1);
	ktest_check(holds_soon(get(visitor->left) && find_signal()));
	left = get(visitor->left);
	for (int i = 0; i < SEARCHES; i++) {
		empty_its_queue();
		ktest_check(get(visitor->left) == left);
	}
	search_without_queues();
	ktest_check(get(visitor->left) == left);
	have_another_search(left);
	ktest_check(get(visitor->left) == left);
	ktest_check(!get(left_done));
	/* For what comes after that thread's task. */
	return ktrt_group_wait(awaited);
}

/* ---- tests ---- */

static int check_note(void *arg)
{
	attached = pthread_self();
	start_with_one_worker((unsigned)(uintptr_t)arg);
	visitor = self_worker;
	ktest_check(!ktrt_group_new(&awaited));
	ktest_check(!ktrt_spawn(search_like_others, NULL));
	ktest_check(holds_soon(get(begun)));
	spawn_using(call_briefly, (void *)&once, KTRT_OUT, NULL);
	spawn_using(do_nothing, NULL, KTRT_IN, awaited);
	ktest_check(!ktrt_wait());
	ktest_check(get(helped));
	ktrt_group_free(awaited);
	ktest_check(!ktrt_stop());
	return 0;
}

static void check_each_way(unsigned flags)
{
	for (kind = 0; kind < NR_KINDS; kind++)
		assert_int_equal(
			ktest_in_child(check_note, (void *)(uintptr_t)flags),
			0);
}

static void notes_stay(void **state)
{
	check_each_way(KTRT_NO_UMT);
}

static void notes_stay_beside_umt(void **state)
{
	check_each_way(KTRT_UMT_FIRST);
}

KTEST_MAIN(KTEST(notes_stay), KTEST(notes_stay_beside_umt))
