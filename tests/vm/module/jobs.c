// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs that succeed: everything is done, once, by several threads.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>

#include "test.h"

#define CELLS 5000

static int one_random_job(struct board *board)
{
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1 + test_random(300));
	unsigned int nr = test_random(board->nr + 1);
	unsigned int i;

	board_clear(board);
	ktask_ctl_set_result(&ctl, &result);
	if (test_random(2))
		ktask_ctl_set_iter_func(&ctl, board_iter);
	else
		ktask_ctl_set_align(&ctl, 1ul << test_random(6));
	ktask_ctl_set_max_threads(&ctl, test_random(5));
	ktask_ctl_set_chunk_us(&ctl, test_random(50));
	expect(!ktask_run(board_at(0), nr, &ctl));
	for (i = 0; i < board->nr; i++)
		expect(atomic_read(&board->cells[i]) == (i < nr));
	expect(result.units == nr && !result.error);
	return 0;
}

static int every_unit_is_done_once(void)
{
	struct board board;
	int error = board_init(&board, CELLS);
	int i;

	for (i = 0; i < 200 && !error; i++)
		error = one_random_job(&board);
	board_free(&board);
	return error;
}

static int with_helpers(struct board *board)
{
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	/* Chunks that sleep leave the CPUs to helpers. */
	board->sleep_us = 500;
	ktask_ctl_set_result(&ctl, &result);
	expect(!board_run_helped(board, &ctl));
	expect(board_all(board, 1));
	expect(result.threads >= 2);
	expect(atomic_read(&board->helper_chunks) > 0);
	return 0;
}

static int helpers_do_a_part(void)
{
	return with_board(400, with_helpers);
}

static int run_alone(struct board *board)
{
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);

	board->sleep_us = 200;
	ktask_ctl_set_max_threads(&ctl, 1);
	expect(!ktask_run(board_at(0), board->nr, &ctl));
	expect(board_all(board, 1));
	expect(atomic_read(&board->helper_chunks) == 0);
	return 0;
}

static int one_thread_means_no_helper(void)
{
	return with_board(100, run_alone);
}

static int in_each_mask(struct board *board, struct cpumask *mask)
{
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);
	int cpu;

	ktask_ctl_set_cpus(&ctl, mask);
	for_each_online_cpu(cpu)
	{
		cpumask_clear(mask);
		cpumask_set_cpu(cpu, mask);
		board_clear(board);
		expect(!ktask_run(board_at(0), board->nr, &ctl));
		expect(board_all(board, 1));
		expect(atomic_read(&board->strays) == 0);
	}
	return 0;
}

static int in_mask(struct board *board, struct cpumask *mask)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	int error;

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	board->sleep_us = 300;
	board->cpus = mask;
	do
		error = in_each_mask(board, mask);
	while (!error && !atomic_read(&board->helper_chunks) &&
	       time_before(jiffies, until));
	if (error)
		return error;
	expect(atomic_read(&board->helper_chunks) > 0);
	return 0;
}

static int helpers_stay_in_the_mask(void)
{
	cpumask_var_t mask;
	struct board board;
	int error;

	if (!alloc_cpumask_var(&mask, GFP_KERNEL))
		return -ENOMEM;
	error = board_init(&board, 200);
	if (!error)
		error = in_mask(&board, mask);
	board_free(&board);
	free_cpumask_var(mask);
	return error;
}

struct nested {
	struct board board;
	atomic_t failed;
	unsigned int width;
};

/* One unit outside is @width cells inside. */
static int nested_chunk(void *start, void *end, void *arg)
{
	struct nested *nested = arg;
	unsigned int from = ((uintptr_t)start - 1) * nested->width;
	size_t nr = ((char *)end - (char *)start) * nested->width;
	DEFINE_KTASK_CTL(ctl, board_chunk, &nested->board, 1);

	if (ktask_run(board_at(from), nr, &ctl))
		atomic_inc(&nested->failed);
	return 0;
}

/* The job outside may have one helper, and so may all those inside. */
static int nest_jobs(struct nested *nested)
{
	DEFINE_KTASK_CTL(ctl, nested_chunk, nested, 1);
	unsigned int nr = nested->board.nr / nested->width;

	nested->board.sleep_us = 200;
	ktask_ctl_set_max_threads(&ctl, 2);
	expect(!ktask_run(board_at(0), nr, &ctl));
	expect(!atomic_read(&nested->failed));
	expect(board_all(&nested->board, 1));
	expect(atomic_read(&nested->board.most) <= 1);
	return 0;
}

static int nested_jobs_share_one_budget(void)
{
	struct nested nested = { .width = 20 };
	int error = board_init(&nested.board, 400);

	if (!error)
		error = nest_jobs(&nested);
	board_free(&nested.board);
	return error;
}

/* A function that runs itself: outside once for each half of the board, inside
 * for its cells. */
struct recursion {
	struct board *board;
	struct recursion *inside; /* NULL: inside */
	atomic_t helped; /* jobs inside that had helpers, in helpers */
	atomic_t failed;
};

static int recursive_chunk(void *start, void *end, void *arg)
{
	struct recursion *r = arg;
	struct ktask_result result = {};
	DEFINE_KTASK_CTL(ctl, recursive_chunk, r->inside, 1);
	unsigned int half = r->board->nr / 2;

	if (!r->inside)
		return board_chunk(start, end, r->board);
	ktask_ctl_set_result(&ctl, &result);
	for (; start < end; start = (char *)start + 1)
		if (ktask_run(board_at(((uintptr_t)start - 1) * half), half,
			      &ctl))
			atomic_inc(&r->failed);
	if (current != r->board->caller && result.threads > 1)
		atomic_inc(&r->helped);
	return 0;
}

static int recur_once(struct board *board)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	struct recursion inside = { .board = board };
	struct recursion outside = { .board = board, .inside = &inside };
	DEFINE_KTASK_CTL(ctl, recursive_chunk, &outside, 1);

	/* The caller, a helper of it, and one of that one. */
	if (num_online_cpus() < 4)
		return test_skip("fewer than four CPUs");
	board->sleep_us = 200;
	do {
		board_clear(board);
		expect(!ktask_run(board_at(0), 2, &ctl));
		expect(!atomic_read(&outside.failed));
		expect(board_all(board, 1));
	} while (!atomic_read(&outside.helped) && time_before(jiffies, until));
	if (!atomic_read(&outside.helped))
		return test_skip("no helper of a helper came");
	return 0;
}

/* Which lockdep, where it is, does not take for a deadlock. */
static int a_chunk_may_run_a_job_of_its_own_kind(void)
{
	return with_board(200, recur_once);
}

static DEFINE_MUTEX(held_mutex);
static DECLARE_RWSEM(held_sem);

static int locked_chunk(void *start, void *end, void *arg)
{
	if (!mutex_is_locked(&held_mutex) || !rwsem_is_locked(&held_sem))
		return -EDEADLK;
	return board_chunk(start, end, arg);
}

/* Locks of the caller stay held, helpers do not care. */
static int jobs_run_under_a_mutex_and_a_semaphore(void)
{
	struct board board;
	DEFINE_KTASK_CTL(ctl, locked_chunk, &board, 1);
	int error = board_init(&board, 500);

	if (error)
		return error;
	board.sleep_us = 100;
	mutex_lock(&held_mutex);
	down_write(&held_sem);
	error = ktask_run(board_at(0), board.nr, &ctl);
	up_write(&held_sem);
	mutex_unlock(&held_mutex);
	if (!error && !board_all(&board, 1))
		error = test_fail("not every unit was done once");
	board_free(&board);
	return error;
}

const struct test job_tests[] = {
	{ "every-unit-is-done-once", every_unit_is_done_once },
	{ "helpers-do-a-part", helpers_do_a_part },
	{ "one-thread-means-no-helper", one_thread_means_no_helper },
	{ "helpers-stay-in-the-mask", helpers_stay_in_the_mask },
	{ "nested-jobs-share-one-budget", nested_jobs_share_one_budget },
	{ "a-chunk-may-run-a-job-of-its-own-kind",
	  a_chunk_may_run_a_job_of_its_own_kind },
	{ "jobs-run-under-a-mutex-and-a-semaphore",
	  jobs_run_under_a_mutex_and_a_semaphore },
	{}
};
