// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs that fail: the first error, exact undo, deadlines, bad arguments.
 */
#include <linux/slab.h>
#include <linux/time64.h>

#include "test.h"

#define CELLS 64
#define DEADLINE_NS (50 * NSEC_PER_MSEC)

/* What was done is undone, once, and nothing else. */
static int fail_at(struct board *board, unsigned int at, bool iterate)
{
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);

	board_clear(board);
	board->fail_at = at;
	ktask_ctl_set_undo_func(&ctl, board_undo);
	ktask_ctl_set_result(&ctl, &result);
	if (iterate)
		ktask_ctl_set_iter_func(&ctl, board_iter);
	expect(ktask_run(board_at(0), board->nr, &ctl) == board->error);
	expect(board_only(board, 1 + BOARD_UNDONE));
	expect(atomic_read(&board->cells[at]) == 0);
	expect(result.error == board->error);
	expect(result.fail_error == board->error);
	expect(result.fail_pos <= board_at(at));
	return 0;
}

static int every_failure_is_undone_exactly(void)
{
	struct board board;
	int error = board_init(&board, CELLS);
	int at;

	board.error = 42; /* the client's own code passes through */
	for (at = 0; at < CELLS && !error; at++) {
		board.sleep_us = at % 2 ? 100 : 0;
		error = fail_at(&board, at, at % 4 > 1);
	}
	board_free(&board);
	return error;
}

static int too_late(struct board *board)
{
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);

	board->sleep_us = 1000;
	ktask_ctl_set_undo_func(&ctl, board_undo);
	ktask_ctl_set_deadline(&ctl, DEADLINE_NS);
	ktask_ctl_set_result(&ctl, &result);
	expect(ktask_run(board_at(0), board->nr, &ctl) == -ETIMEDOUT);
	expect(board_only(board, 1 + BOARD_UNDONE));
	expect(!board_all(board, 1 + BOARD_UNDONE));
	expect(result.wall_ns >= DEADLINE_NS);
	return 0;
}

static int deadlines_end_jobs(void)
{
	return with_board(20000, too_late);
}

static int bad_arguments_run_nothing(void)
{
	struct ktask_node bad_node = { board_at(0), 1, -2 };
	struct board board;
	DEFINE_KTASK_CTL(good, board_chunk, &board, 1);
	struct ktask_ctl ctl = good;

	ctl.thread_func = NULL;
	expect(ktask_run(board_at(0), 1, &ctl) == -EINVAL);
	ctl = good;
	ctl.min_chunk_size = 0;
	expect(ktask_run(board_at(0), 1, &ctl) == -EINVAL);
	ctl = good;
	ctl.align = 3;
	expect(ktask_run(board_at(0), 1, &ctl) == -EINVAL);
	ctl = good;
	ctl.flags = ~0u;
	expect(ktask_run(board_at(0), 1, &ctl) == -EINVAL);
	expect(ktask_run((void *)-10l, 100, &good) == -EINVAL);
	expect(ktask_run(board_at(0), 1, NULL) == -EINVAL);
	expect(ktask_run_numa(NULL, 1, &good) == -EINVAL);
	expect(ktask_run_numa(&bad_node, 1, &good) == -EINVAL);
	expect(ktask_run(board_at(0), 0, &good) == 0);
	expect(ktask_run_numa(NULL, 0, &good) == 0);
	return 0;
}

/* What a range of one chunk does is what a job of it would have done. */
static int do_one_chunk(struct board *board)
{
	DEFINE_KTASK_CTL(ctl, board_chunk, board, CELLS);
	int iterate;

	board->error = 42;
	ktask_ctl_set_undo_func(&ctl, board_undo);
	for (iterate = 0; iterate < 2; iterate++) {
		ktask_ctl_set_iter_func(&ctl, iterate ? board_iter : NULL);
		board_clear(board);
		board->fail_at = -1;
		expect(!ktask_run(board_at(0), board->nr, &ctl));
		expect(board_all(board, 1));
		expect(!atomic_read(&board->helper_chunks));
		board_clear(board);
		board->fail_at = 0;
		expect(ktask_run(board_at(0), board->nr, &ctl) == 42);
		expect(board_all(board, 0));
	}
	return 0;
}

static int one_chunk_is_done_by_the_caller(void)
{
	return with_board(CELLS, do_one_chunk);
}

/* More ranges than one allocation can hold: a cell each, then nothing. */
#define MANY 100000

static int without_table(struct board *board, struct ktask_node *nodes)
{
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		nodes[i].start = board_at(min(i, board->nr - 1));
		nodes[i].task_size = i < board->nr;
		nodes[i].nid = NUMA_NO_NODE;
	}
	ktask_ctl_set_undo_func(&ctl, board_undo);
	ktask_ctl_set_result(&ctl, &result);
	expect(!ktask_run_numa(nodes, MANY, &ctl));
	expect(board_all(board, 1) && result.units == board->nr);

	board_clear(board);
	board->fail_at = board->nr / 2;
	expect(ktask_run_numa(nodes, MANY, &ctl) == board->error);
	expect(board_only(board, 1 + BOARD_UNDONE));
	for (i = 0; i < board->nr; i++)
		expect(!atomic_read(&board->cells[i]) == (i >= board->nr / 2));

	/* Nothing runs if the last is malformed. */
	board_clear(board);
	nodes[MANY - 1].start = (void *)-1l;
	nodes[MANY - 1].task_size = 100;
	expect(ktask_run_numa(nodes, MANY, &ctl) == -EINVAL);
	expect(board_all(board, 0));
	return 0;
}

static int without_memory_ranges_are_done_one_by_one(void)
{
	struct ktask_node *nodes = kvcalloc(MANY, sizeof(*nodes), GFP_KERNEL);
	struct board board;
	int error = board_init(&board, CELLS);

	if (!error)
		error = nodes ? without_table(&board, nodes) : -ENOMEM;
	board_free(&board);
	kvfree(nodes);
	return error;
}

const struct test error_tests[] = {
	{ "every-failure-is-undone-exactly", every_failure_is_undone_exactly },
	{ "deadlines-end-jobs", deadlines_end_jobs },
	{ "bad-arguments-run-nothing", bad_arguments_run_nothing },
	{ "one-chunk-is-done-by-the-caller", one_chunk_is_done_by_the_caller },
	{ "without-memory-ranges-are-done-one-by-one",
	  without_memory_ranges_are_done_one_by_one },
	{}
};
