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
 * What talks is done in the order in which it was made (a chain of tasks), and
 * sending never waits.  That order is part of an order of all ranks' tasks in
 * which everything is sent before it is received, so no set of ranks can wait
 * for each other, however few workers there are: the receive that comes first
 * in it has been sent.  The price: with more than two ranks, fewer sweeps at a
 * time.
 *
 * Checkpoints overlap with what follows: while the blocks of one are written
 * the thread that makes tasks waits until the one before it is on the disk on
 * every rank.
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
	sem_t written; /* posted when a checkpoint's blocks are all written */
	/* Names of data, for dependences; what is in them means nothing. */
	char *blocks, *upper, *lower; /* by block; by column of blocks */
	char chain, slots[2];
};

struct block_task {
	struct graph *graph;
	struct checkpoint *checkpoint; /* NULL: none in this sweep */
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
	return checkpoint_block(task->checkpoint, task->row, task->col);
}

static int do_written(void *arg)
{
	struct graph *graph = *(struct graph **)arg;

	sem_post(&graph->written);
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

static void received(void *arg)
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
		comm_recv_then(cells, bytes, task->rank, task->tag, received,
			       ktrt_self());
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

static int spawn_block(struct graph *graph, unsigned row, unsigned col,
		       struct checkpoint *checkpoint, char *slot)
{
	struct block_task task = { graph, checkpoint, row, col };
	const struct grid *grid = graph->grid;
	struct ktrt_dep deps[6];
	size_t nr = 0;

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
	if (checkpoint)
		deps[nr++] = (struct ktrt_dep){ slot, 0, KTRT_IN };
	/* What waits for the disk begins first: its neighbours wait for it. */
	return app_spawn(do_block, &task, sizeof(task), deps, nr,
			 checkpoint != NULL);
}

static int spawn_sweep(struct graph *graph, struct checkpoint *checkpoint,
		       char *slot)
{
	const struct grid *grid = graph->grid;
	int error = spawn_halos(graph);

	for (unsigned row = 0; row < grid->block_rows && !error; row++)
		for (unsigned col = 0; col < grid->block_cols && !error; col++)
			error = spawn_block(graph, row, col, checkpoint, slot);
	if (comm_rank() == comm_ranks() - 1)
		return error;
	for (unsigned col = 0; col < grid->block_cols && !error; col++)
		error = spawn_row(graph, do_send, grid->rows, col,
				  block_name(graph, grid->block_rows - 1, col),
				  KTRT_IN, comm_rank() + 1, TAG_DOWN);
	return error;
}

static int spawn_written(struct graph *graph, char *slot)
{
	const struct ktrt_dep dep = { slot, 0, KTRT_INOUT };

	return app_spawn(do_written, &graph, sizeof(graph), &dep, 1, 1);
}

/* ---- all sweeps ---- */

static int finish(struct graph *graph, struct checkpoint *checkpoint)
{
	int error;

	while (sem_wait(&graph->written) && errno == EINTR)
		;
	error = checkpoint_seal(checkpoint);
	/* Then this rank does not come to the barrier, but ends them all. */
	if (!error)
		comm_barrier();
	return checkpoint_end(checkpoint);
}

static int spawn_all(struct graph *graph, unsigned from)
{
	const struct heat_options *options = graph->options;
	struct checkpoint *pending = NULL;
	unsigned nr_checkpoints = 0;
	int error = 0;

	for (unsigned sweep = from + 1; sweep <= options->sweeps && !error;
	     sweep++) {
		struct checkpoint *now = NULL;
		char *slot = &graph->slots[nr_checkpoints % 2];

		if (options->app.every && sweep % options->app.every == 0)
			error = checkpoint_begin(graph->checkpoints, sweep,
						 &now);
		if (!error)
			error = spawn_sweep(graph, now, slot);
		if (!now)
			continue;
		nr_checkpoints++;
		if (!error)
			error = spawn_written(graph, slot);
		if (error)
			break;
		if (pending)
			error = finish(graph, pending);
		pending = now;
	}
	/* After an error too: its tasks may still be about to use it. */
	if (pending) {
		int last = finish(graph, pending);

		error = error ? error : last;
	}
	return error;
}

static int graph_init(struct graph *graph)
{
	const struct grid *grid = graph->grid;

	graph->blocks = malloc((size_t)grid->block_rows * grid->block_cols);
	graph->upper = malloc(grid->block_cols);
	graph->lower = malloc(grid->block_cols);
	if (sem_init(&graph->written, 0, 0))
		return -errno;
	return graph->blocks && graph->upper && graph->lower ? 0 : -ENOMEM;
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
	sem_destroy(&graph.written);
	free(graph.blocks);
	free(graph.upper);
	free(graph.lower);
	return error ? error : failed;
}
