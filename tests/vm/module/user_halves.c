// SPDX-License-Identifier: GPL-2.0-only
/*
 * Halves of tests whose other half is in user space (tests/vm/init.c): their
 * names begin with '+', and PID 1 does not run them by itself.
 */
#include <linux/cpumask.h>
#include <linux/sched/signal.h>

#include "test.h"

static int last_error = -1;

/* For minutes, unless it is killed. */
static int long_job(unsigned int flags)
{
	struct board board;
	DEFINE_KTASK_CTL(ctl, board_chunk, &board, 1);
	int error = board_init(&board, 200000);

	last_error = 1;
	if (!error) {
		board.sleep_us = 1000;
		ctl.flags = flags;
		last_error = ktask_run(board_at(0), board.nr, &ctl);
	}
	board_free(&board);
	return error;
}

static int killable_job(void)
{
	return long_job(KTASK_KILLABLE);
}

static int was_interrupted(void)
{
	expect(last_error == -EINTR);
	return 0;
}

/* A second or so, over and over while user space does something. */
static int short_job(void)
{
	struct board board;
	DEFINE_KTASK_CTL(ctl, board_chunk, &board, 1);
	int error = board_init(&board, 1000);

	if (!error) {
		board.sleep_us = 500;
		error = ktask_run(board_at(0), board.nr, &ctl);
	}
	if (!error && !board_all(&board, 1))
		error = test_fail("not every unit was done once");
	board_free(&board);
	return error;
}

/* Helpers for each CPU alone, whichever are there.  The first stays, and so do its
 * helpers. */
static int masked_jobs(void)
{
	struct board board;
	DEFINE_KTASK_CTL(ctl, board_chunk, &board, 1);
	int error = board_init(&board, 400), cpu;

	board.sleep_us = 500;
	for_each_possible_cpu(cpu)
	{
		ktask_ctl_set_cpus(&ctl, cpumask_of(cpu));
		board.cpus = cpu ? NULL : cpumask_of(cpu);
		if (!error)
			board_clear(&board);
		if (!error)
			error = ktask_run(board_at(0), board.nr, &ctl);
		if (!error && !board_all(&board, 1))
			error = test_fail("not every unit was done once");
	}
	board_free(&board);
	if (error)
		return error;
	expect(atomic_read(&board.strays) == 0);
	return 0;
}

static int empty_chunk(void *start, void *end, void *arg)
{
	return 0;
}

/* Until it is killed: short jobs, each for helpers of one CPU.  A helper that was woken
 * for one CPU is soon wanted on the next, and may not have run in between. */
static int helpers_from_cpu_to_cpu(void)
{
	DEFINE_KTASK_CTL(ctl, empty_chunk, NULL, 1);
	int error = 0, cpu;

	while (!error && !fatal_signal_pending(current))
		for_each_online_cpu(cpu)
		{
			ktask_ctl_set_cpus(&ctl, cpumask_of(cpu));
			error = error ?: ktask_run(board_at(0), 4, &ctl);
		}
	return error;
}

/* A job in a task that is being killed is done nonetheless, if it does not
 * say that it may be ended. */
static int dying_job(void)
{
	struct board board;
	DEFINE_KTASK_CTL(ctl, board_chunk, &board, 1);
	int error = board_init(&board, 100);

	while (!error && !fatal_signal_pending(current))
		schedule_timeout_uninterruptible(1);
	last_error = error ? error : ktask_run(board_at(0), board.nr, &ctl);
	if (!board_all(&board, 1))
		last_error = -ENODATA;
	board_free(&board);
	return 0;
}

static int was_done(void)
{
	expect(last_error == 0);
	return 0;
}

/* The caller's CPUs may be those of its cpuset. */
static int helpers_on_my_cpus(void)
{
	struct board board;
	DEFINE_KTASK_CTL(ctl, board_chunk, &board, 1);
	int error = board_init(&board, 400);

	if (!error) {
		board.sleep_us = 300;
		board.cpus = current->cpus_ptr;
		error = board_run_helped(&board, &ctl);
	}
	board_free(&board);
	if (error)
		return error;
	expect(atomic_read(&board.helper_chunks) > 0);
	expect(atomic_read(&board.strays) == 0);
	return 0;
}

/* Long enough for a helper to get a CPU, if one came. */
static int unhelped_jobs(void)
{
	struct board board;
	DEFINE_KTASK_CTL(ctl, board_chunk, &board, 1);
	int error = board_init(&board, 100);
	int i;

	board.sleep_us = 300;
	for (i = 0; i < 5 && !error; i++) {
		board_clear(&board);
		error = ktask_run(board_at(0), board.nr, &ctl);
	}
	board_free(&board);
	if (error)
		return error;
	expect(atomic_read(&board.helper_chunks) == 0);
	return 0;
}

const struct test user_half_tests[] = {
	{ "+killable-job", killable_job },
	{ "+was-interrupted", was_interrupted },
	{ "+short-job", short_job },
	{ "+masked-jobs", masked_jobs },
	{ "+helpers-from-cpu-to-cpu", helpers_from_cpu_to_cpu },
	{ "+dying-job", dying_job },
	{ "+was-done", was_done },
	{ "+unhelped-jobs", unhelped_jobs },
	{ "+helpers-on-my-cpus", helpers_on_my_cpus },
	{}
};
