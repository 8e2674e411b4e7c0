// SPDX-License-Identifier: GPL-2.0-only
/*
 * Started jobs: they go on by themselves, are waited for, are cancelled.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/sched.h>

#include "test.h"

#define PATIENCE_MS 10000

static int go_on(struct board *board)
{
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);
	struct ktask_job *job;
	int ms;

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	ktask_ctl_set_result(&ctl, &result);
	expect(!ktask_start(&job, board_at(0), board->nr, &ctl));
	for (ms = 0; ms < PATIENCE_MS && !board_all(board, 1); ms++)
		usleep_range(1000, 2000);
	/* Nobody waits, and helpers alone have done all of it. */
	expect(board_all(board, 1));
	expect(!ktask_wait(job));
	expect(result.units == board->nr);
	return 0;
}

static int started_jobs_go_on_by_themselves(void)
{
	struct board board;
	int error = board_init(&board, 500);

	if (!error)
		error = go_on(&board);
	board_free(&board);
	return error;
}

static int without_helper(struct board *board)
{
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);
	struct ktask_job *job;

	ktask_ctl_set_max_threads(&ctl, 1);
	expect(!ktask_start(&job, board_at(0), board->nr, &ctl));
	usleep_range(5000, 6000);
	expect(board_all(board, 0));
	expect(!ktask_wait(job));
	expect(board_all(board, 1));
	return 0;
}

static int without_helpers_who_waits_works(void)
{
	struct board board;
	int error = board_init(&board, 100);

	if (!error)
		error = without_helper(&board);
	board_free(&board);
	return error;
}

static int cancel(struct board *board)
{
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);
	struct ktask_job *job;

	board->sleep_us = 1000;
	ktask_ctl_set_undo_func(&ctl, board_undo);
	expect(!ktask_start(&job, board_at(0), board->nr, &ctl));
	usleep_range(10000, 11000);
	ktask_cancel(job);
	expect(ktask_wait(job) == -ECANCELED);
	expect(board_only(board, 1 + BOARD_UNDONE));
	expect(!board_all(board, 1 + BOARD_UNDONE));
	return 0;
}

static int cancelled_jobs_are_undone(void)
{
	struct board board;
	int error = board_init(&board, 50000);

	if (!error)
		error = cancel(&board);
	board_free(&board);
	return error;
}

static int bad_starts_give_no_job(void)
{
	struct ktask_job *job = (void *)1;
	struct board board;
	DEFINE_KTASK_CTL(ctl, board_chunk, &board, 0);

	expect(ktask_start(&job, board_at(0), 1, &ctl) == -EINVAL && !job);
	job = (void *)1;
	expect(ktask_start(&job, board_at(0), 1, NULL) == -EINVAL && !job);
	expect(ktask_wait(NULL) == -EINVAL);
	ktask_cancel(NULL);
	return 0;
}

const struct test start_tests[] = {
	{ "started-jobs-go-on-by-themselves",
	  started_jobs_go_on_by_themselves },
	{ "without-helpers-who-waits-works", without_helpers_who_waits_works },
	{ "cancelled-jobs-are-undone", cancelled_jobs_are_undone },
	{ "bad-starts-give-no-job", bad_starts_give_no_job },
	{}
};
