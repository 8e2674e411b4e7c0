/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread notes a task that it leaves to workers, and its mark.  A worker may
 * read the one of an older note and the other of a newer one: then it takes a task that some
 * attached thread has left, or none.  A task that a worker took and put back is as if it had
 * never been left: the thread searches for it again.
 */
#include "support/runs.h"

#include "support/bare_runtime.h"

/* A runtime without threads. */
static struct worker *worker, *first, *second;
static struct ktrt_task outer, tasks[2];

/* As if it visited the core. */
static struct worker *attach_visitor(void)
{
	struct worker *w = worker_new(0);

	assert_non_null(w);
	w->core = &rt.cores[0];
	w->outer = w->current = &outer;
	return w;
}

static void lay_out(void)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	bare_runtime_begin(&cpus, 1, 4);
	worker = worker_new(0);
	assert_non_null(worker);
	worker->core = &rt.cores[0];
	first = attach_visitor();
	second = attach_visitor();
	memset(tasks, 0, sizeof(tasks));
	task_renew(&outer, NULL, NULL, NULL);
	for (int i = 0; i < 2; i++)
		task_renew(&tasks[i], &outer, compute_only, NULL);
}

static void clear_up(void)
{
	rt.cores[0].active = 0;
	bare_runtime_end();
}

static struct ktrt_task *take_left(const struct ktrt_task *left, uint32_t mark)
{
	const struct wait_filter any = { &outer, NULL, &outer, true, false };

	return node_queue_take_left(&rt.node_queues[0], left, mark, &any);
}

static void a_mark_of_another_note_takes_nothing(void **state)
{
	lay_out();
	visit_leave(first, &tasks[0]);
	visit_leave(second, &tasks[1]);
	assert_null(take_left(first->left, second->left_by));
	assert_null(take_left(second->left, first->left_by));
	/* Both are still there for who has read a whole note. */
	assert_true(visit_has_left(first) && visit_has_left(second));
	assert_ptr_equal(take_left(first->left, first->left_by), &tasks[0]);
	assert_ptr_equal(take_left(second->left, second->left_by), &tasks[1]);
	assert_false(visit_has_left(first) || visit_has_left(second));
	clear_up();
}

static void no_note_takes_what_nobody_left(void **state)
{
	const struct ktrt_task *left;
	uint32_t mark;

	lay_out();
	visit_leave(first, &tasks[0]);
	left = first->left;
	mark = first->left_by;
	assert_int_not_equal(mark, 0);
	assert_ptr_equal(take_left(left, mark), &tasks[0]);
	/* Its record is another task by now. */
	assert_true(node_queue_put(&rt.node_queues[0], &tasks[0]));
	assert_null(take_left(left, mark));
	assert_false(visit_has_left(first));
	assert_ptr_equal(node_queue_take(&rt.node_queues[0]), &tasks[0]);
	/* And is left again. */
	visit_leave(second, &tasks[0]);
	assert_null(take_left(left, mark));
	assert_ptr_equal(take_left(left, second->left_by), &tasks[0]);
	clear_up();
}

static void who_left_what_is_put_back_searches_again(void **state)
{
	struct core *core;

	lay_out();
	core = worker->core;
	core->active = 2;
	core->early_func = block_early;
	core->early = 1;
	visit_leave(first, &tasks[0]);
	assert_true(visit_has_left(first));
	assert_null(early_take(worker, block_early));
	assert_int_equal(core->early, 0);
	assert_int_equal(deque_size(&worker->deque), 1);
	assert_int_equal(tasks[0].left_by, 0);
	assert_false(visit_has_left(first));
	assert_null(first->left);
	clear_up();
}

KTEST_MAIN(KTEST(a_mark_of_another_note_takes_nothing),
	   KTEST(no_note_takes_what_nobody_left),
	   KTEST(who_left_what_is_put_back_searches_again))
