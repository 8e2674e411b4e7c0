/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The tasks.  A block reads its four neighbours and writes itself; sweeps
 * follow each other without a barrier, so that they run as waves over the
 * plate, several at a time.
 *
 * Between ranks, per sweep and column of blocks: the first row goes up, as it
 * was before the sweep, to be the lower halo there; the last row goes down, as
 * it is after the sweep, to be the upper halo there.
 *
 * Tasks that communicate run in the order in which they were made (a chain), and sending
 * never waits.  The tasks of all ranks can be put in an order in which everything is sent
 * before it is received, and that keeps the order of each chain.  So ranks cannot wait for
 * each other in a circle, however few workers there are: the first receive in that order
 * has been sent.  The price: with more than two ranks, fewer sweeps at a time.
 *
 * With --behind the task of a block in a checkpoint copies it, and a task of
 * its own writes the copy: then a slow write holds up neither the neighbours
 * nor the next sweep.
 *
 * Checkpoints overlap with what follows: while the blocks of one are written
 * the thread that makes tasks waits until the one before it, or with --pending
 * an earlier one, is on the disk on every rank.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "apps/common/comm.h"
#include "heat.h"

enum { TAG_UP = 1, TAG_DOWN };

struct graph {
	struct grid *grid;
	const struct heat_options *options;
	struct checkpoints *checkpoints;
	/* Names of data, for dependences; what is in them means nothing. */
	char *blocks, *upper, *lower; /* by block; by column of blocks */
	char chain;
	/* One for each checkpoint that is under way, used in turn. */
	struct slot {
		struct checkpoint *checkpoint; /* NULL: none */
		sem_t written; /* posted when all its blocks are */
		char *copies; /* by block */
	} slots[PENDING_MAX];
	unsigned begun; /* checkpoints */
};

struct block_task {
	struct graph *graph;
	struct slot *slot; /* NULL: no checkpoint in this sweep */
	struct checkpoint *checkpoint;
	unsigned row, col;
};

struct row_task {
	struct graph *graph;
	unsigned col; /* of blocks */
	unsigned row; /* of cells */
	int rank, tag; /* to whom or from whom */
};

static char *block_name(const struct graph *graph, unsigned row, unsigned col)
{
	return &graph->blocks[(size_t)row * graph->grid->block_cols + col];
}

/* ---- bodies ---- */

static int do_block(void *arg)
{
	const struct block_task *task = arg;
	const struct grid *grid = task->graph->grid;
	struct area area = grid_area(grid, task->row, task->col);

	grid_sweep(grid, &area);
	if (!task->checkpoint)
		return 0;
	if (task->graph->options->app.behind)
		return checkpoint_copy(task->checkpoint, task->row, task->col);
	return checkpoint_block(task->checkpoint, task->row, task->col);
}

static int do_write(void *arg)
{
	const struct block_task *task = arg;

	return checkpoint_write(task->checkpoint, task->row, task->col);
}

static int do_written(void *arg)
{
	struct slot *slot = *(struct slot **)arg;

	sem_post(&slot->written);
	return 0;
}

static double *row_cells(const struct row_task *task, size_t *bytes)
{
	const struct grid *grid = task->graph->grid;
	struct area area = grid_area(grid, 0, task->col);

	*bytes = (area.col_end - area.col) * sizeof(double);
	return grid_row(grid, task->row) + area.col;
}

static int do_send(void *arg)
{
	const struct row_task *task = arg;
	size_t bytes;
	double *cells = row_cells(task, &bytes);

	comm_send(cells, bytes, task->rank, task->tag);
	return 0;
}

static void mark_received(void *arg)
{
	ktrt_events_done(arg, 1);
}

static int do_recv(void *arg)
{
	const struct row_task *task = arg;
	size_t bytes;
	double *cells = row_cells(task, &bytes);
	int error = 0;

	if (!task->graph->options->app.events)
		comm_recv(cells, bytes, task->rank, task->tag);
	else if (!(error = ktrt_events_add(1)))
		comm_recv_then(cells, bytes, task->rank, task->tag,
			       mark_received, ktrt_self());
	return error;
}

/* ---- tasks of one sweep ---- */

static int spawn_row(struct graph *graph, ktrt_func func, unsigned row,
		     unsigned col, char *data, unsigned mode, int rank, int tag)
{
	struct row_task task = { graph, col, row, rank, tag };
	const struct ktrt_dep deps[] = {
		{ data, 0, mode },
		{ &graph->chain, 0, KTRT_INOUT },
	};

	return app_spawn(func, &task, sizeof(task), deps, 2, 1);
}

/* What comes before the blocks: sends up, halos. */
static int spawn_halos(struct graph *graph)
{
	const struct grid *grid = graph->grid;
	int rank = comm_rank(), last = comm_ranks() - 1, error = 0;
	unsigned col, cols = grid->block_cols;

	for (col = 0; rank > 0 && col < cols && !error; col++)
		error = spawn_row(graph, do_send, 1, col,
				  block_name(graph, 0, col), KTRT_IN, rank - 1,
				  TAG_UP);
	for (col = 0; rank < last && col < cols && !error; col++)
		error = spawn_row(graph, do_recv, grid->rows + 1, col,
				  &graph->lower[col], KTRT_OUT, rank + 1,
				  TAG_UP);
	for (col = 0; rank > 0 && col < cols && !error; col++)
		error = spawn_row(graph, do_recv, 0, col, &graph->upper[col],
				  KTRT_OUT, rank - 1, TAG_DOWN);
	return error;
}

/* After the task that copies the block. */
static int spawn_write(const struct block_task *task, char *copy)
{
	const struct ktrt_dep deps[] = { { copy, 0, KTRT_IN },
					 { task->slot, 0, KTRT_IN } };

	return app_spawn(do_write, task, sizeof(*task), deps, 2, 2);
}

static int spawn_block(struct graph *graph, unsigned row, unsigned col,
		       struct slot *slot)
{
	struct block_task task = { graph, slot, slot ? slot->checkpoint : NULL,
				   row, col };
	const struct grid *grid = graph->grid;
	bool behind = slot && graph->options->app.behind;
	size_t index = (size_t)row * grid->block_cols + col;
	struct ktrt_dep deps[6];
	size_t nr = 0;
	int error;

	deps[nr++] = (struct ktrt_dep){ row ? block_name(graph, row - 1, col)
					    : &graph->upper[col],
					0, KTRT_IN };
	deps[nr++] =
		(struct ktrt_dep){ row + 1 < grid->block_rows
					   ? block_name(graph, row + 1, col)
					   : &graph->lower[col],
				   0, KTRT_IN };
	if (col)
		deps[nr++] = (struct ktrt_dep){ block_name(graph, row, col - 1),
						0, KTRT_IN };
	if (col + 1 < grid->block_cols)
		deps[nr++] = (struct ktrt_dep){ block_name(graph, row, col + 1),
						0, KTRT_IN };
	deps[nr++] =
		(struct ktrt_dep){ block_name(graph, row, col), 0, KTRT_INOUT };
	if (behind)
		deps[nr++] =
			(struct ktrt_dep){ &slot->copies[index], 0, KTRT_OUT };
	else if (slot)
		deps[nr++] = (struct ktrt_dep){ slot, 0, KTRT_IN };
	/* What waits for the disk begins first: its neighbours wait for it. */
	error = app_spawn(do_block, &task, sizeof(task), deps, nr,
			  slot != NULL);
	return error || !behind ? error
				: spawn_write(&task, &slot->copies[index]);
}

static int spawn_sweep(struct graph *graph, struct slot *slot)
{
	const struct grid *grid = graph->grid;
	int error = spawn_halos(graph);

	for (unsigned row = 0; row < grid->block_rows && !error; row++)
		for (unsigned col = 0; col < grid->block_cols && !error; col++)
			error = spawn_block(graph, row, col, slot);
	if (comm_rank() == comm_ranks() - 1)
		return error;
	for (unsigned col = 0; col < grid->block_cols && !error; col++)
		error = spawn_row(graph, do_send, grid->rows, col,
				  block_name(graph, grid->block_rows - 1, col),
				  KTRT_IN, comm_rank() + 1, TAG_DOWN);
	return error;
}

static int spawn_written(struct slot *slot)
{
	const struct ktrt_dep dep = { slot, 0, KTRT_INOUT };

	return app_spawn(do_written, &slot, sizeof(slot), &dep, 1, 1);
}

/* ---- all sweeps ---- */

/* The checkpoint in a slot, if any, to its end; the slot is free again. */
static int finish_checkpoint(struct slot *slot)
{
	struct checkpoint *checkpoint = slot->checkpoint;
	int error;

	if (!checkpoint)
		return 0;
	slot->checkpoint = NULL;
	while (sem_wait(&slot->written) && errno == EINTR)
		;
	error = checkpoint_seal(checkpoint);
	/* Then this rank does not come to the barrier, but ends them all. */
	if (!error)
		comm_barrier();
	return checkpoint_end(checkpoint);
}

static struct slot *next_slot(struct graph *graph)
{
	return &graph->slots[graph->begun % graph->options->pending];
}

/* A sweep with a checkpoint; then wait for the one whose slot is the next. */
static int spawn_checkpoint(struct graph *graph, unsigned sweep)
{
	struct slot *slot = next_slot(graph);
	struct checkpoint *checkpoint;
	int error = checkpoint_begin(graph->checkpoints, sweep, &checkpoint);

	if (error)
		return error;
	slot->checkpoint = checkpoint;
	graph->begun++;
	error = spawn_sweep(graph, slot);
	if (!error)
		error = spawn_written(slot);
	/* Nobody would post that it is written. */
	if (error)
		slot->checkpoint = NULL;
	return error ? error : finish_checkpoint(next_slot(graph));
}

static int spawn_all(struct graph *graph, unsigned from)
{
	const struct heat_options *options = graph->options;
	int error = 0;

	for (unsigned sweep = from + 1; sweep <= options->sweeps && !error;
	     sweep++)
		error = options->app.every && sweep % options->app.every == 0
				? spawn_checkpoint(graph, sweep)
				: spawn_sweep(graph, NULL);
	/* After an error too: tasks may still be about to use them. */
	for (unsigned i = 0; i < options->pending; i++, graph->begun++) {
		int last = finish_checkpoint(next_slot(graph));

		error = error ? error : last;
	}
	return error;
}

static int graph_init(struct graph *graph)
{
	const struct grid *grid = graph->grid;
	size_t nr_blocks = (size_t)grid->block_rows * grid->block_cols;

	graph->blocks = malloc(nr_blocks);
	graph->upper = malloc(grid->block_cols);
	graph->lower = malloc(grid->block_cols);
	if (!graph->blocks || !graph->upper || !graph->lower)
		return -ENOMEM;
	for (unsigned i = 0; i < graph->options->pending; i++) {
		struct slot *slot = &graph->slots[i];

		slot->copies = malloc(nr_blocks);
		if (!slot->copies)
			return -ENOMEM;
		if (sem_init(&slot->written, 0, 0))
			return -errno;
	}
	return 0;
}

static void graph_destroy(struct graph *graph)
{
	for (unsigned i = 0; i < graph->options->pending; i++) {
		sem_destroy(&graph->slots[i].written);
		free(graph->slots[i].copies);
	}
	free(graph->blocks);
	free(graph->upper);
	free(graph->lower);
}

int graph_run(struct grid *grid, const struct heat_options *options,
	      struct checkpoints *checkpoints, unsigned from)
{
	struct graph graph = { .grid = grid,
			       .options = options,
			       .checkpoints = checkpoints };
	int error = graph_init(&graph), failed;

	if (error)
		app_fail(error, "preparing tasks");
	else
		error = spawn_all(&graph, from);
	/* They would wait for what this rank does not send any more. */
	if (error && comm_ranks() > 1)
		comm_abort();
	failed = ktrt_wait();
	graph_destroy(&graph);
	return error ? error : failed;
}
