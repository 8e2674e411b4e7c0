/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * If the queue of an attached thread holds plenty, it does brief tasks where it makes them, as
 * a worker does, and need not visit a core for that.  Such a task knows a core, and is not
 * cancelled in its middle.  Others are queued.
 */
#include "support/runs.h"

#include <pthread.h>

#include "runtime/func_kinds.h"

/* More than are plenty, and fewer than caches hold. */
#define CHILDREN 1000
#define TRIES 100

static unsigned long nr_done, nr_here, nr_strange;
static pthread_t maker;

static int note_task(void *arg)
{
	int cancel_state;

	if (pthread_equal(pthread_self(), maker)) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
		if (cancel_state != PTHREAD_CANCEL_DISABLE ||
		    ktrt_worker() < 0 || ktrt_detach() != -ESRCH)
			more(nr_strange);
		more(nr_here);
	}
	more(nr_done);
	return 0;
}

static ktrt_func dispatched = note_task;

/* How many did the thread itself, before it waited? */
static unsigned long make_children(ktrt_func func, void *arg)
{
	unsigned long here;

	set(nr_done, 0);
	set(nr_here, 0);
	for (int i = 0; i < CHILDREN; i++)
		assert_int_equal(ktrt_spawn(func, arg), 0);
	here = get(nr_here);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(nr_done), CHILDREN);
	return here;
}

static void start_runtime(unsigned workers)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = workers;
	assert_int_equal(ktrt_start(&options), 0);
	maker = pthread_self();
}

/* Workers may be so fast that it never has plenty. */
static void try_with(unsigned workers)
{
	unsigned long here = 0;
	int cancel_state;

	start_runtime(workers);
	for (int i = 0; i < TRIES && !here; i++) {
		func_classify(note_task, true);
		func_note_tried(note_task);
		here = make_children(note_task, NULL);
	}
	printf("# of %d: %lu\n", CHILDREN, here);
	assert_true(here > 0);
	assert_int_equal(get(nr_strange), 0);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state);
	assert_int_equal(cancel_state, PTHREAD_CANCEL_ENABLE);
	assert_int_equal(ktrt_worker(), -1);
	assert_int_equal(ktrt_stop(), 0);
}

static void brief_ones_are_done_at_once(void **state)
{
	try_with(1);
	try_with(0);
}

/* Nobody knows what a dispatched one does. */
static void others_are_queued(void **state)
{
	start_runtime(1);
	assert_int_equal(make_children(ktrt_dispatch, &dispatched), 0);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(brief_ones_are_done_at_once), KTEST(others_are_queued))
