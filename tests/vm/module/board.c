// SPDX-License-Identifier: GPL-2.0-only
/*
 * The board: what was done, how often, by whom and where.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "test.h"

int board_init(struct board *board, unsigned int nr)
{
	*board = (struct board){
		.nr = nr,
		.caller = current,
		.fail_at = -1,
		.error = -EIO,
	};
	board->cells = kvcalloc(nr, sizeof(*board->cells), GFP_KERNEL);
	return board->cells ? 0 : -ENOMEM;
}

void board_free(struct board *board)
{
	kvfree(board->cells);
}

int with_board(unsigned int nr, int (*func)(struct board *board))
{
	struct board board;
	int error = board_init(&board, nr);

	if (!error)
		error = func(&board);
	board_free(&board);
	return error;
}

void board_clear(struct board *board)
{
	unsigned int i;

	for (i = 0; i < board->nr; i++)
		atomic_set(&board->cells[i], 0);
}

static void raise_most(struct board *board, int running)
{
	int most = atomic_read(&board->most);

	while (running > most &&
	       !atomic_try_cmpxchg(&board->most, &most, running))
		;
}

static void enter_chunk(struct board *board)
{
	if (current == board->caller)
		return;
	atomic_inc(&board->helper_chunks);
	raise_most(board, atomic_inc_return(&board->running));
	/* May be moved after the look, but not before it. */
	if (board->cpus &&
	    !cpumask_test_cpu(raw_smp_processor_id(), board->cpus))
		atomic_inc(&board->strays);
}

static void leave_chunk(struct board *board)
{
	if (current != board->caller)
		atomic_dec(&board->running);
}

static void mark_cells(struct board *board, void *start, void *end, int value)
{
	uintptr_t cell;

	for (cell = (uintptr_t)start; cell < (uintptr_t)end; cell++)
		atomic_add(value, &board->cells[cell - 1]);
}

int board_chunk(void *start, void *end, void *arg)
{
	struct board *board = arg;
	long first = (uintptr_t)start - 1, last = (uintptr_t)end - 1;
	bool fails = board->fail_at >= first && board->fail_at < last;

	enter_chunk(board);
	if (board->sleep_us)
		usleep_range(board->sleep_us, board->sleep_us * 2);
	if (!fails)
		mark_cells(board, start, end, 1);
	leave_chunk(board);
	return fails ? board->error : 0;
}

void board_undo(void *start, void *end, void *arg)
{
	mark_cells(arg, start, end, BOARD_UNDONE);
}

void *board_iter(void *position, size_t size)
{
	return (char *)position + size;
}

int board_run_helped(struct board *board, const struct ktask_ctl *ctl)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	int error;

	do {
		board_clear(board);
		error = ktask_run(board_at(0), board->nr, ctl);
	} while (!error && !atomic_read(&board->helper_chunks) &&
		 time_before(jiffies, until));
	return error;
}

bool board_all(const struct board *board, int value)
{
	unsigned int i;

	for (i = 0; i < board->nr; i++)
		if (atomic_read(&board->cells[i]) != value)
			return false;
	return true;
}

bool board_only(const struct board *board, int value)
{
	unsigned int i;

	for (i = 0; i < board->nr; i++) {
		int is = atomic_read(&board->cells[i]);

		if (is && is != value)
			return false;
	}
	return true;
}
