// SPDX-License-Identifier: GPL-2.0-only
/*
 * Started jobs: they go on by themselves, are waited for, are cancelled.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "test.h"

#define PATIENCE_MS 60000

/* Nobody waits meanwhile: helpers alone do it. */
static bool becomes_done(const struct board *board)
{
	unsigned long until = jiffies + msecs_to_jiffies(PATIENCE_MS);

	while (!board_all(board, 1) && time_before(jiffies, until))
		usleep_range(1000, 2000);
	return board_all(board, 1);
}

static int run_unwaited(struct board *board)
{
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);
	struct ktask_job *job;
	bool done;

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	ktask_ctl_set_result(&ctl, &result);
	expect(!ktask_start(&job, board_at(0), board->nr, &ctl));
	done = becomes_done(board);
	/* Before the verdict: it uses the board. */
	expect(!ktask_wait(job));
	expect(done);
	expect(result.units == board->nr);
	return 0;
}

static int started_jobs_run_by_themselves(void)
{
	return with_board(500, run_unwaited);
}

/* ---- more jobs than helpers ---- */

static DECLARE_COMPLETION(may_end);

static int held_chunk(void *start, void *end, void *arg)
{
	wait_for_completion_timeout(&may_end, msecs_to_jiffies(PATIENCE_MS));
	return board_chunk(start, end, arg);
}

/* Each wants one helper, and holds it. */
static unsigned int start_held(struct ktask_job **jobs, unsigned int nr,
			       struct board *board)
{
	DEFINE_KTASK_CTL(ctl, held_chunk, board, 1);
	unsigned int i;

	ktask_ctl_set_max_threads(&ctl, 2);
	for (i = 0; i < nr; i++)
		if (ktask_start(&jobs[i], board_at(2 * i), 2, &ctl))
			break;
	return i;
}

/* The machine's last CPU is no helper's, so that one job at least has none. */
static int find_later(struct ktask_job **jobs, unsigned int nr,
		      struct board *board)
{
	unsigned int nr_started, i;
	int error = 0;
	bool done;

	reinit_completion(&may_end);
	nr_started = start_held(jobs, nr, board);
	usleep_range(20000, 30000);
	complete_all(&may_end);
	done = nr_started == nr && becomes_done(board);
	for (i = 0; i < nr_started; i++)
		error = ktask_wait(jobs[i]) ?: error;
	expect(nr_started == nr);
	expect(!error);
	expect(done);
	return 0;
}

static int started_jobs_find_helpers_later(void)
{
	unsigned int nr = num_online_cpus();
	struct ktask_job **jobs;
	struct board board;
	int error;

	if (nr < 2)
		return test_skip("one CPU");
	jobs = kcalloc(nr, sizeof(*jobs), GFP_KERNEL);
	if (!jobs)
		return -ENOMEM;
	error = board_init(&board, 2 * nr);
	if (!error)
		error = find_later(jobs, nr, &board);
	board_free(&board);
	kfree(jobs);
	return error;
}

/* ---- halves of a test whose other half changes a quota ---- */

static struct ktask_job **quota_jobs;
static unsigned int nr_quota_jobs;
static struct board quota_board;

/* As many as there are CPUs: more than there may be helpers. */
static int start_for_quota(void)
{
	unsigned int nr = num_online_cpus();
	int error;

	if (nr < 2)
		return test_skip("one CPU");
	quota_jobs = kcalloc(nr, sizeof(*quota_jobs), GFP_KERNEL);
	error = quota_jobs ? board_init(&quota_board, 2 * nr) : -ENOMEM;
	if (error)
		return error;
	reinit_completion(&may_end);
	nr_quota_jobs = start_held(quota_jobs, nr, &quota_board);
	expect(nr_quota_jobs == nr);
	return 0;
}

/* The quota is one CPU by now: whoever has no helper gets none. */
static int end_for_quota(void)
{
	unsigned int i;
	int error = 0;
	bool done;

	/* A job may be about to ask, and asks again each 20 ms. */
	msleep(100);
	complete_all(&may_end);
	msleep(200);
	done = board_all(&quota_board, 1);
	for (i = 0; i < nr_quota_jobs; i++)
		error = ktask_wait(quota_jobs[i]) ?: error;
	if (!error && !board_all(&quota_board, 1))
		error = -ENODATA;
	board_free(&quota_board);
	kfree(quota_jobs);
	expect(!error);
	expect(!done);
	return 0;
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
	return with_board(100, without_helper);
}

/* A function of two jobs: chunks of the second wait for the first. */
struct hand_over {
	struct board *board;
	struct ktask_job *job; /* to wait for; NULL: chunks of that one */
	atomic_t taken; /* to be waited for by a chunk in a helper */
	int error; /* of that */
};

static int waiting_chunk(void *start, void *end, void *arg)
{
	struct hand_over *hand = arg;

	if (!hand->job)
		return board_chunk(start, end, hand->board);
	if (current == hand->board->caller)
		usleep_range(1000, 2000);
	else if (!atomic_xchg(&hand->taken, 1))
		hand->error = ktask_wait(hand->job);
	return 0;
}

static int hand_over(struct board *board)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	struct hand_over first = { .board = board };
	struct hand_over second = { .board = board };
	DEFINE_KTASK_CTL(started, waiting_chunk, &first, 1);
	DEFINE_KTASK_CTL(ctl, waiting_chunk, &second, 1);

	if (num_online_cpus() < 2)
		return test_skip("one CPU");
	do {
		board_clear(board);
		expect(!ktask_start(&second.job, board_at(0), board->nr,
				    &started));
		expect(!ktask_run(board_at(0), board->nr, &ctl));
		if (!atomic_read(&second.taken))
			second.error = ktask_wait(second.job);
		expect(!second.error);
		expect(board_all(board, 1));
	} while (!atomic_read(&second.taken) && time_before(jiffies, until));
	expect(atomic_read(&second.taken));
	return 0;
}

/* Which lockdep does not take for a deadlock either. */
static int a_chunk_may_wait_for_a_job_of_its_own_kind(void)
{
	return with_board(50, hand_over);
}

static int cancel_job(struct board *board)
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
	return with_board(50000, cancel_job);
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

/* ---- for allocations that fail: tests/vm/failures.c ---- */

static atomic_t units_done;

static int counted_chunk(void *start, void *end, void *arg)
{
	atomic_add((uintptr_t)end - (uintptr_t)start, &units_done);
	return 0;
}

/* -ENOMEM is of nothing else here, and then there is no job. */
static int start_may_fail(void)
{
	struct ktask_job *job = (void *)1;
	DEFINE_KTASK_CTL(ctl, counted_chunk, NULL, 1);
	int error;

	atomic_set(&units_done, 0);
	error = ktask_start(&job, board_at(0), 100, &ctl);
	if (error) {
		expect(!job && !atomic_read(&units_done));
		return error;
	}
	expect(!ktask_wait(job));
	expect(atomic_read(&units_done) == 100);
	return 0;
}

const struct test start_tests[] = {
	{ "started-jobs-go-on-by-themselves", started_jobs_run_by_themselves },
	{ "started-jobs-find-helpers-later", started_jobs_find_helpers_later },
	{ "without-helpers-who-waits-works", without_helpers_who_waits_works },
	{ "a-chunk-may-wait-for-a-job-of-its-own-kind",
	  a_chunk_may_wait_for_a_job_of_its_own_kind },
	{ "cancelled-jobs-are-undone", cancelled_jobs_are_undone },
	{ "bad-starts-give-no-job", bad_starts_give_no_job },
	{ "+start-for-quota", start_for_quota },
	{ "+end-for-quota", end_for_quota },
	{ "+start-may-fail", start_may_fail },
	{}
};
