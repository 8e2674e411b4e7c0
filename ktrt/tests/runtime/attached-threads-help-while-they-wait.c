/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread that waits does tasks itself, also if no worker can: what it
 * waits for, however nested, with any priority.  It does so where the functions are
 * known to be brief; others, which may end the thread, are left to workers.
 */
#include "support/attached_thread.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define MANY 300ul
/* Nobody else ends the test's only worker sooner. */
#define LATE_NS 30000000000

static int ends[2]; /* of a pipe */
static unsigned long done, wanted, here;
static pthread_t attached;

static int block_until_written(void *arg)
{
	char byte;

	return read(ends[0], &byte, 1) == 1 ? 0 : -EIO;
}

/* The last one lets the worker go on. */
static int count_task(void *arg)
{
	if (pthread_equal(pthread_self(), attached))
		more(here);
	pthread_testcancel();
	if (more(done) == get(wanted))
		ktest_check(write(ends[1], "x", 1) == 1);
	return 0;
}

static int count_below(void *arg)
{
	if (ktrt_spawn(count_task, NULL))
		return -ENOMEM;
	return ktrt_wait();
}

/* Workers do some until it is known that they are brief. */
static void let_be_known(ktrt_func func)
{
	uint64_t late_ns = ktest_now_ns() + LATE_NS;

	set(wanted, 0);
	do {
		for (int i = 0; i < 20; i++)
			assert_int_equal(ktrt_spawn(func, NULL), 0);
		(void)holds_soon(!sched_work_visible());
		assert_int_equal(ktrt_wait(), 0);
	} while (!func_is_brief(func) && ktest_now_ns() < late_ns);
	assert_true(func_is_brief(func));
}

static void start_runtime(unsigned flags, unsigned max_threads)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = 1;
	options.max_threads = max_threads;
	options.flags = flags;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(ktrt_start(&options), 0);
	attached = pthread_self();
	stay_on_a_core();
	set(done, 0);
	set(here, 0);
}

/* The attached thread may do tasks itself whose functions are known to be brief. */
static void start_with_known(unsigned flags, unsigned max_threads)
{
	start_runtime(flags, max_threads);
	let_be_known(count_task);
	let_be_known(count_below);
}

static void stop_runtime(void)
{
	assert_int_equal(ktrt_stop(), 0);
	close(ends[0]);
	close(ends[1]);
}

/* Frees the worker if the runtime does not. */
static pthread_t watchdog;
static unsigned is_over, was_late;

static void *watch_waiting(void *arg)
{
	uint64_t until = ktest_now_ns() + LATE_NS;

	while (!get(is_over) && ktest_now_ns() < until)
		nap_us(1000);
	if (get(is_over))
		return NULL;
	set(was_late, 1);
	ktest_check(write(ends[1], "x", 1) == 1);
	return NULL;
}

/* @nr_wanted: tasks that the attached thread shall do meanwhile */
static void block_the_worker(unsigned long nr_wanted)
{
	set(is_over, 0);
	set(was_late, 0);
	set(done, 0);
	set(here, 0);
	assert_int_equal(ktrt_spawn(block_until_written, NULL), 0);
	assert_true(holds_soon(!sched_work_visible()));
	assert_int_equal(pthread_create(&watchdog, NULL, watch_waiting, NULL),
			 0);
	set(wanted, nr_wanted);
}

static void wait_in_time(void)
{
	assert_int_equal(ktrt_wait(), 0);
	set(is_over, 1);
	assert_int_equal(pthread_join(watchdog, NULL), 0);
	assert_int_equal(get(was_late), 0);
	assert_int_equal(get(done), get(wanted));
	assert_int_equal(get(here), get(wanted));
	assert_int_equal(ktrt_worker(), -1);
	/* Workers may leave brief tasks to it. */
	assert_true(at_peek(&self_worker->helps));
}

static void do_all_without_worker(unsigned flags)
{
	start_runtime(flags, 1);
	let_be_known(count_task);
	block_the_worker(MANY);
	for (unsigned long i = 0; i < MANY; i++)
		assert_int_equal(ktrt_spawn(count_task, NULL), 0);
	wait_in_time();
	stop_runtime();
}

static void no_worker_is_needed(void **state)
{
	do_all_without_worker(0);
	do_all_without_worker(KTRT_NO_UMT);
	do_all_without_worker(KTRT_UMT_FIRST);
	do_all_without_worker(KTRT_NO_UMT | KTRT_UNBOUND);
}

static void children_and_priorities_are_reached(void **state)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	start_with_known(KTRT_NO_UMT, 1);
	block_the_worker(3 * MANY);
	for (unsigned long i = 0; i < MANY; i++) {
		attr.priority = (int)(i % 7) - 3;
		assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
		assert_int_equal(ktrt_spawn_attr(count_below, NULL, &attr), 0);
		assert_int_equal(ktrt_spawn(count_below, NULL), 0);
	}
	wait_in_time();
	stop_runtime();
}

/* The worker's task is not of the group, and nobody waits for it. */
static void groups_are_waited_for_alike(void **state)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	start_with_known(KTRT_NO_UMT, 1);
	block_the_worker(3 * MANY);
	assert_int_equal(ktrt_group_new(&attr.group), 0);
	for (unsigned long i = 0; i < MANY; i++) {
		attr.priority = (int)(i % 7) - 3;
		assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
		attr.priority = 0;
		assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
		assert_int_equal(ktrt_spawn_attr(count_below, NULL, &attr), 0);
	}
	assert_int_equal(ktrt_group_wait(attr.group), 0);
	assert_int_equal(get(done), get(wanted));
	wait_in_time();
	ktrt_group_free(attr.group);
	stop_runtime();
}

/* Makes more than its limit of children, and does the first of them before it waits. */
static int count_many_below(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.priority = 1;
	for (unsigned long i = 0; i < MANY; i++)
		if (ktrt_spawn_attr(count_task, NULL, &attr))
			return -ENOMEM;
	return ktrt_wait();
}

static void threads_help_on_after_a_task_with_many_children(void **state)
{
	start_runtime(KTRT_NO_UMT, 1);
	rt.options.max_children = 64;
	let_be_known(count_task);
	block_the_worker(MANY);
	func_classify(count_many_below, true);
	assert_int_equal(ktrt_spawn(count_many_below, NULL), 0);
	wait_in_time();
	stop_runtime();
}

/* ---- what it leaves to workers ---- */

static int leave_task(void *arg)
{
	pthread_exit(NULL);
}

/* As often as not it makes such a task, and waits for it. */
static int leave_below(void *arg)
{
	unsigned long i = (unsigned long)arg;

	more(done);
	if (i % 2 && ktrt_spawn(leave_task, NULL))
		return -ENOMEM;
	if (i % 4 == 3)
		ktrt_wait();
	return 0;
}

static int refuse_here(void *arg)
{
	return pthread_equal(pthread_self(), attached) ? -EIO : 0;
}

static void unknown_ones_are_for_workers(void **state)
{
	const ktrt_func refuse = refuse_here;

	start_runtime(0, 0);
	let_be_known(leave_below);
	set(done, 0);
	for (unsigned long i = 0; i < MANY; i++)
		assert_int_equal(ktrt_spawn(leave_below, (void *)i), 0);
	assert_int_equal(ktrt_wait(), -ECANCELED);
	assert_int_equal(get(done), MANY);
	for (unsigned long i = 0; i < MANY; i++)
		assert_int_equal(
			ktrt_spawn_copy(ktrt_dispatch, &refuse, sizeof(refuse)),
			0);
	assert_int_equal(ktrt_wait(), 0);
	stop_runtime();
}

/* A task that has always been brief ends the attached thread. */
static int leave_sometimes(void *arg)
{
	if (arg)
		pthread_exit(NULL);
	return 0;
}

static void *attach_and_end(void *arg)
{
	ktest_check(!ktrt_attach());
	ktest_check(!ktrt_spawn(leave_sometimes, arg));
	ktrt_wait();
	return arg;
}

/* The only worker is blocked, so nobody else does that task.  No other function is made known
 * before: the runtime may forget one when it learns the next (func_kinds.h). */
static int lose_a_thread(void *arg)
{
	pthread_t thread;
	void *result;

	start_runtime(KTRT_NO_UMT, 1);
	let_be_known(leave_sometimes);
	assert_int_equal(ktrt_spawn(block_until_written, NULL), 0);
	assert_true(holds_soon(!sched_work_visible()));
	ktest_check(!pthread_create(&thread, NULL, attach_and_end, &result));
	ktest_check(!pthread_join(thread, &result));
	ktest_check(!result);
	ktest_check(write(ends[1], "x", 1) == 1);
	let_be_known(count_task);
	set(done, 0);
	for (unsigned long i = 0; i < MANY; i++)
		ktest_check(!ktrt_spawn(count_task, NULL));
	ktest_check(!ktrt_wait());
	ktest_check(get(done) == MANY);
	/* One of the runtime's cores is free again for whoever makes tasks there. */
	ktest_check(!at_load(&rt.cores[0].visitor));
	ktest_check(!ktrt_stop());
	_exit(0);
}

static void a_thread_may_end_in_one(void **state)
{
	assert_int_equal(ktest_in_child(lose_a_thread, NULL), 0);
}

/* ---- many at a time ---- */

#define THREADS 6

static int make_more(void *arg)
{
	unsigned long nesting = (unsigned long)arg;

	for (int i = 0; i < 2 && nesting; i++)
		if (ktrt_spawn(make_more, (void *)(nesting - 1)))
			return -ENOMEM;
	more(done);
	return nesting % 2 ? ktrt_wait() : 0;
}

static void *attach_and_wait(void *arg)
{
	ktest_check(!ktrt_attach());
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 10; j++)
			ktest_check(!ktrt_spawn(make_more, (void *)4ul));
		ktest_check(!ktrt_wait());
	}
	ktest_check(!ktrt_detach());
	return NULL;
}

static void several_help_at_once(void)
{
	pthread_t threads[THREADS];

	set(done, 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						attach_and_wait, NULL),
				 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(get(done), THREADS * 20 * 10 * 31ul);
}

static void several_threads_help(void **state)
{
	in_each_way(several_help_at_once);
}

/* It stays where the program lets it run, and is cancelled in no task. */
static void *be_cancelled(void *arg)
{
	ktest_check(!ktrt_attach());
	pthread_cancel(pthread_self());
	for (unsigned long i = 0; i < MANY; i++)
		ktest_check(!ktrt_spawn(count_below, NULL));
	ktest_check(!ktrt_wait());
	ktest_check(!ktrt_detach());
	more(here);
	pthread_testcancel();
	return NULL;
}

static void threads_are_the_programs(void **state)
{
	cpu_set_t before, after;
	pthread_t thread;
	void *result;

	start_with_known(0, 0);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	set(done, 0);
	set(here, 0);
	attached = 0;
	assert_int_equal(pthread_create(&thread, NULL, be_cancelled, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(get(here), 1);
	assert_int_equal(get(done), MANY);
	for (unsigned long i = 0; i < MANY; i++)
		assert_int_equal(ktrt_spawn(count_task, NULL), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	stop_runtime();
}

/* Its child first: a thread of libumt may outlive a runtime, and the thread sanitizer keeps
 * the parent's threads in its list after a fork. */
KTEST_MAIN(KTEST(a_thread_may_end_in_one), KTEST(no_worker_is_needed),
	   KTEST(children_and_priorities_are_reached),
	   KTEST(groups_are_waited_for_alike),
	   KTEST(threads_help_on_after_a_task_with_many_children),
	   KTEST(unknown_ones_are_for_workers), KTEST(several_threads_help),
	   KTEST(threads_are_the_programs))
