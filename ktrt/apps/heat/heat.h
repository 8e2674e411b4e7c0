/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Heat diffusion on a plate: Gauss-Seidel sweeps over a grid, in place, with a
 * checkpoint every few of them.  The structure is that of the second
 * application in Roca et al., "User-monitored threads" (see doc/design.md):
 * blocks of the grid are tasks, without a barrier between sweeps, and the task
 * of a block at a checkpoint updates the block, then writes it.  --behind goes
 * beyond it: that task copies the block, and another one writes the copy.
 *
 *   grid.c        the plate, or a rank's rows of it, and the sweep of a block
 *   graph.c       the tasks of all sweeps
 *   checkpoint.c  blocks to the disk and back; a checkpoint is whole or none
 *   verify.c      the same sweeps by one thread, compared bit by bit
 *   options.c     the command line
 *   main.c        the order of all this
 */
#ifndef APPS_HEAT_H
#define APPS_HEAT_H

#include <stdint.h>

#include "apps/common/app.h"

#define PENDING_MAX 16

/** What the user asked for. */
struct heat_options {
	struct app_options app;
	unsigned rows, cols; /* without the border */
	unsigned block; /* rows and columns of a block */
	unsigned sweeps;
	unsigned pending; /* checkpoints that may be under way at once */
	bool restart; /* go on from the last checkpoint */
};

/** heat_options_parse - ends the program where they are wrong, or asked for */
void heat_options_parse(struct heat_options *options, int argc, char **argv);

/* ---- grid.c ---- */

/**
 * A rank's part of the plate: @rows rows, from row @first of the plate on.
 * Row 0 and row @rows + 1 are halos, or the plate's border; so are column 0
 * and column @cols + 1.
 */
struct grid {
	double *cells;
	unsigned first, rows, cols;
	unsigned block, block_rows, block_cols; /* and how many blocks */
};

/** grid_init - rank @rank of @ranks; 0 or -ENOMEM */
int grid_init(struct grid *grid, const struct heat_options *options, int rank,
	      int ranks);
void grid_destroy(struct grid *grid);

static inline double *grid_row(const struct grid *grid, unsigned row)
{
	return grid->cells + (size_t)row * (grid->cols + 2);
}

/** Part of the grid, in its own rows and columns: [begin, end). */
struct area {
	unsigned row, row_end, col, col_end;
};

/** grid_area - the cells of block (@row, @col) */
struct area grid_area(const struct grid *grid, unsigned row, unsigned col);

/** grid_sweep - update the cells of @area, by rows */
void grid_sweep(const struct grid *grid, const struct area *area);

/** grid_sum - of all inner cells */
uint64_t grid_sum(const struct grid *grid);

/* ---- checkpoint.c ---- */

struct checkpoint; /* one that is being written */
struct checkpoints; /* a rank's */

int checkpoints_open(struct checkpoints **all, const struct grid *grid,
		     const struct heat_options *options, int rank);
void checkpoints_close(struct checkpoints *all);

/** checkpoint_begin - of the state after @sweep; 0 or -errno, told */
int checkpoint_begin(struct checkpoints *all, unsigned sweep,
		     struct checkpoint **checkpoint);

/** checkpoint_copy - take a block as it is now; any thread; 0 or -errno, told
 * once */
int checkpoint_copy(struct checkpoint *checkpoint, unsigned row, unsigned col);

/** checkpoint_write - write what was copied of the block; likewise */
int checkpoint_write(struct checkpoint *checkpoint, unsigned row, unsigned col);

/** checkpoint_block - both; likewise */
int checkpoint_block(struct checkpoint *checkpoint, unsigned row, unsigned col);

/** checkpoint_seal - every block is written: make it whole; 0 or -errno, told */
int checkpoint_seal(struct checkpoint *checkpoint);

/**
 * checkpoint_end - once it is sealed on every rank
 *
 * It takes the place of the last but one.  After an error it is thrown away
 * instead, and the two before it are as they were.
 *
 * Return: 0 or -errno, told.
 */
int checkpoint_end(struct checkpoint *checkpoint);

/** checkpoints_newest - the sweep of the newest on the disk, 0: none; 0 or
 * -errno, told, if there may be one */
int checkpoints_newest(const struct checkpoints *all, unsigned *newest);

/** checkpoints_load - that of @sweep; 0 or -errno, told */
int checkpoints_load(struct checkpoints *all, struct grid *grid,
		     unsigned sweep);

/** checkpoints_last - the sweep of the last that ended here; 0: none */
unsigned checkpoints_last(const struct checkpoints *all);

uint64_t checkpoints_bytes(const struct checkpoints *all);

/* ---- graph.c ---- */

/** graph_run - sweeps @from to options->sweeps, as tasks; 0 or -errno, told */
int graph_run(struct grid *grid, const struct heat_options *options,
	      struct checkpoints *checkpoints, unsigned from);

/* ---- verify.c ---- */

/** sequential_run - @sweeps sweeps by this thread */
void sequential_run(struct grid *grid, unsigned sweeps);

/** verify_grid - compare all ranks' grids with a sequential program's state after
 * @sweeps; rank 0 judges.  Return: 0, -EILSEQ (told) or -ENOMEM. */
int verify_grid(const struct grid *grid, const struct heat_options *options,
		unsigned sweeps, const char *what);

#endif /* APPS_HEAT_H */
