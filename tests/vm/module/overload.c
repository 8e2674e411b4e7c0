// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many jobs at once: caps hold, everybody finishes.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "test.h"

#define CALLERS 12
#define ROUNDS 10

static atomic_t helpers_now, helpers_most;

struct caller {
	struct board board;
	struct completion done;
	int error;
};

static int count_helpers_chunk(void *start, void *end, void *arg)
{
	struct caller *caller = arg;
	bool helper = current != caller->board.caller;
	int most, now, error;

	if (helper) {
		now = atomic_inc_return(&helpers_now);
		most = atomic_read(&helpers_most);
		while (now > most &&
		       !atomic_try_cmpxchg(&helpers_most, &most, now))
			;
	}
	error = board_chunk(start, end, &caller->board);
	if (helper)
		atomic_dec(&helpers_now);
	return error;
}

static int run_jobs(struct caller *caller)
{
	struct board *board = &caller->board;
	DEFINE_KTASK_CTL(ctl, count_helpers_chunk, caller, 1);
	int error = board_init(board, 100);
	int round;

	board->sleep_us = 100;
	for (round = 0; round < ROUNDS && !error; round++) {
		board_clear(board);
		error = ktask_run(board_at(0), board->nr, &ctl);
		if (!error && !board_all(board, 1))
			error = -ENODATA;
	}
	board_free(board);
	return error;
}

static int caller_main(void *arg)
{
	struct caller *caller = arg;

	caller->error = run_jobs(caller);
	kthread_complete_and_exit(&caller->done, 0);
}

static int start_all(struct caller *callers)
{
	int nr;

	for (nr = 0; nr < CALLERS; nr++) {
		init_completion(&callers[nr].done);
		if (IS_ERR(kthread_run(caller_main, &callers[nr], "overload/%d",
				       nr)))
			break;
	}
	return nr;
}

static int run_all_once(struct caller *callers)
{
	int nr = start_all(callers), i;

	for (i = 0; i < nr; i++)
		wait_for_completion(&callers[i].done);
	expect(nr == CALLERS);
	for (i = 0; i < nr; i++)
		expect(!callers[i].error);
	return 0;
}

static int run_until_helped(struct caller *callers)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	int cap = num_online_cpus() * 80 / 100;
	int error;

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	atomic_set(&helpers_most, 0);
	do
		error = run_all_once(callers);
	while (!error && !atomic_read(&helpers_most) &&
	       time_before(jiffies, until));
	if (error)
		return error;
	expect(atomic_read(&helpers_most) > 0);
	expect(atomic_read(&helpers_most) <= max(cap, 1));
	return 0;
}

static int caps_hold_for_all_jobs(void)
{
	struct caller *callers = kcalloc(CALLERS, sizeof(*callers), GFP_KERNEL);
	int error = callers ? run_until_helped(callers) : -ENOMEM;

	kfree(callers);
	return error;
}

/* ---- a job that would take all helpers ---- */

#define HOG_CELLS 100000

struct hog {
	struct board board;
	struct completion done;
	bool stop;
	int error;
};

static int hog_chunk(void *start, void *end, void *arg)
{
	struct hog *hog = arg;

	if (READ_ONCE(hog->stop))
		return -ECANCELED;
	return board_chunk(start, end, &hog->board);
}

static int hog_main(void *arg)
{
	struct hog *hog = arg;
	DEFINE_KTASK_CTL(ctl, hog_chunk, hog, 1);

	hog->board.caller = current;
	while (!READ_ONCE(hog->stop))
		hog->error = ktask_run(board_at(0), HOG_CELLS, &ctl);
	kthread_complete_and_exit(&hog->done, 0);
}

static bool has_helper(struct hog *hog)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);

	while (!atomic_read(&hog->board.helper_chunks) &&
	       time_before(jiffies, until))
		schedule_timeout_uninterruptible(1);
	return atomic_read(&hog->board.helper_chunks);
}

/* Return: whether the hog had a helper before the other job did. */
static bool run_beside(struct hog *hog, struct board *board, int *error)
{
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);
	bool helped;

	init_completion(&hog->done);
	if (IS_ERR(kthread_run(hog_main, hog, "hog"))) {
		*error = -ENOMEM;
		return false;
	}
	helped = has_helper(hog);
	*error = board_run_helped(board, &ctl);
	WRITE_ONCE(hog->stop, true);
	wait_for_completion(&hog->done);
	return helped;
}

static int share_cpus(struct hog *hog, struct board *board)
{
	bool helped;
	int error;

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	hog->board.sleep_us = 200;
	board->sleep_us = 200;
	helped = run_beside(hog, board, &error);
	expect(!error);
	if (!helped)
		return test_skip("no helper came to the long job");
	expect(atomic_read(&board->helper_chunks) > 0);
	return 0;
}

static int a_job_gets_helpers_beside_a_longer_one(void)
{
	struct hog *hog = kzalloc(sizeof(*hog), GFP_KERNEL);
	struct board board;
	int error = -ENOMEM;

	if (!hog)
		return -ENOMEM;
	if (!board_init(&hog->board, HOG_CELLS)) {
		error = board_init(&board, 400);
		if (!error)
			error = share_cpus(hog, &board);
		board_free(&board);
	}
	board_free(&hog->board);
	kfree(hog);
	return error;
}

const struct test overload_tests[] = {
	{ "caps-hold-for-all-jobs", caps_hold_for_all_jobs },
	{ "a-job-gets-helpers-beside-a-longer-one",
	  a_job_gets_helpers_beside_a_longer_one },
	{}
};
