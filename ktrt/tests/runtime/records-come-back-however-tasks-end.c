/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread keeps the record of a task that it did itself, and gets back the one of
 * a task that a worker did.  No record is lost, however a task ends: it returns, fails, is
 * skipped, leaves its thread, waits for an event that a foreign thread ends, or is done
 * inside the call that makes it.
 */
#include "support/runs.h"

#include <pthread.h>

#include "runtime/func_kinds.h"
#include "support/bare_runtime.h"

#define BATCH 200
#define BATCHES (KTEST_TSAN || KTEST_ASAN ? 25 : 100)
/* Each task takes a thread. */
#define LEAVING_BATCHES (KTEST_TSAN || KTEST_ASAN ? 2 : 40)
/* All that the few threads may keep.  Without a sanitizer a record for each task of a row of
 * batches is more. */
#define THREADS_MOST 8
#define GROWTH_MOST (2ul << 20)

static int do_nothing(void *arg)
{
	return 0;
}

/* ---- a runtime without threads ---- */

static struct ktrt_task *make_task(struct worker *maker)
{
	struct ktrt_task *task = task_new(maker, do_nothing, NULL);

	assert_non_null(task);
	assert_int_equal(task->flags, TASK_LOANED);
	maker->outer->spawned++;
	return task;
}

static void each_gets_the_records_that_it_uses(void **state)
{
	struct worker *maker, *other;
	struct ktrt_task outer = { 0 }, *task;
	cpu_set_t cpus;
	unsigned nr;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	bare_runtime_begin(&cpus, 1, 4);
	maker = worker_new(0);
	other = worker_new(0);
	assert_true(maker && other);
	task_renew(&outer, NULL, NULL, NULL);
	outer.flags = TASK_OUTER;
	maker->outer = maker->current = &outer;
	nr = maker->tasks.nr_free;
	assert_null(task_run(maker, make_task(maker)));
	assert_null(outer.back);
	assert_int_equal(maker->tasks.nr_free, nr);
	assert_int_equal(outer.spawned, 0);
	/* The other one's children are counted before it ends. */
	task = make_task(maker);
	outer.live += outer.spawned;
	outer.credited = outer.spawned;
	assert_null(task_run(other, task));
	assert_ptr_equal(outer.back, task);
	assert_int_equal(other->tasks.nr_free, RECORD_TASKS);
	assert_ptr_equal(make_task(maker), task);
	assert_null(outer.back);
	bare_runtime_end();
}

/* ---- all ways to end ---- */

static struct ktrt_task *pending;
static unsigned over;

static int fail_task(void *arg)
{
	return -EIO;
}

static int leave_task(void *arg)
{
	pthread_exit(NULL);
}

static void end_event(struct ktrt_task *task)
{
	if (task)
		ktrt_events_done(task, 1);
}

/* Ends the event of the one before; who is last is ended by the foreign thread. */
static int await_event(void *arg)
{
	ktest_check(!ktrt_events_add(1));
	end_event(at_swap(&pending, ktrt_self()));
	return 0;
}

static void *end_events(void *arg)
{
	while (!get(over)) {
		nap_us(50);
		end_event(at_swap(&pending, NULL));
	}
	return NULL;
}

static int make_children(void *arg)
{
	for (int i = 0; i < 3; i++)
		if (ktrt_spawn(do_nothing, NULL))
			return -ENOMEM;
	return arg ? ktrt_wait() : 0;
}

static void make_plainly(ktrt_func func)
{
	for (unsigned long i = 0; i < BATCH; i++)
		ktest_check(!ktrt_spawn(func, (void *)(i % 2)));
	ktrt_wait();
}

static void make_with_flags(ktrt_func func, unsigned flags)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.flags = flags;
	for (int i = 0; i < BATCH; i++)
		ktest_check(!ktrt_spawn_attr(func, NULL, &attr));
	ktrt_wait();
}

static void make_cancelled(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	ktest_check(!ktrt_group_new(&attr.group));
	for (int i = 0; i < BATCH; i++) {
		if (i == BATCH / 2)
			ktrt_group_cancel(attr.group);
		ktest_check(!ktrt_spawn_attr(make_children, NULL, &attr));
	}
	ktrt_group_wait(attr.group);
	ktest_check(!ktrt_wait());
	ktrt_group_free(attr.group);
}

enum { RETURN, FAIL, NEST, EVENT, UNDEFERRED, CANCELLED, LEAVE, NR_ENDS };

static void make_batch(int end)
{
	if (end == UNDEFERRED)
		make_with_flags(make_children, KTRT_UNDEFERRED);
	else if (end == CANCELLED)
		make_cancelled();
	else
		make_plainly(end == FAIL    ? fail_task
			     : end == NEST  ? make_children
			     : end == EVENT ? await_event
			     : end == LEAVE ? leave_task
					    : do_nothing);
}

static size_t record_bytes(void)
{
	return pool_bytes(&rt.tasks);
}

static void lose_none(int end)
{
	int nr = end == LEAVE ? LEAVING_BATCHES : BATCHES;
	size_t before;

	make_batch(end);
	before = record_bytes();
	for (int i = 0; i < nr; i++)
		make_batch(end);
	printf("# %d: %zu KiB more\n", end, (record_bytes() - before) >> 10);
	assert_true(record_bytes() - before < GROWTH_MOST);
}

static void lose_none_in(unsigned workers, unsigned flags)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	pthread_t thread;

	options.workers = workers;
	options.flags = flags;
	options.max_threads = THREADS_MOST;
	assert_int_equal(ktrt_start(&options), 0);
	set(over, 0);
	assert_int_equal(pthread_create(&thread, NULL, end_events, NULL), 0);
	for (int end = 0; end < NR_ENDS; end++)
		lose_none(end);
	set(over, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(ktrt_stop(), 0);
}

static void no_record_is_lost(void **state)
{
	lose_none_in(0, 0);
	lose_none_in(1, KTRT_NO_UMT);
	lose_none_in(0, KTRT_FOLLOW);
}

KTEST_MAIN(KTEST(each_gets_the_records_that_it_uses), KTEST(no_record_is_lost))
