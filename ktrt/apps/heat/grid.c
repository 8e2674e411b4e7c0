/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The plate.  Each cell becomes the mean of its four neighbours, in place, by
 * rows: north and west are new, south and east old.  A block does the same
 * arithmetic in the same order wherever it runs, so the result has the same
 * bits for any number of blocks, workers and ranks.
 */
#include <errno.h>
#include <stdlib.h>

#include "apps/common/disk.h"
#include "heat.h"

#define HOT 1.0

int grid_init(struct grid *grid, const struct heat_options *options, int rank,
	      int ranks)
{
	unsigned first = app_part_start(options->rows, rank, ranks);
	unsigned end = app_part_start(options->rows, rank + 1, ranks);

	*grid = (struct grid){
		.first = first,
		.rows = end - first,
		.cols = options->cols,
		.block = options->block,
	};
	grid->block_rows = (grid->rows + grid->block - 1) / grid->block;
	grid->block_cols = (grid->cols + grid->block - 1) / grid->block;
	grid->cells = disk_alloc((size_t)(grid->rows + 2) * (grid->cols + 2) *
				 sizeof(double));
	if (!grid->cells)
		return -ENOMEM;
	/* The left border is hot, all else cold. */
	for (unsigned row = 0; row < grid->rows + 2; row++)
		*grid_row(grid, row) = HOT;
	return 0;
}

void grid_destroy(struct grid *grid)
{
	free(grid->cells);
	grid->cells = NULL;
}

static unsigned min_unsigned(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

struct area grid_area(const struct grid *grid, unsigned row, unsigned col)
{
	return (struct area){
		.row = 1 + row * grid->block,
		.row_end =
			1 + min_unsigned((row + 1) * grid->block, grid->rows),
		.col = 1 + col * grid->block,
		.col_end =
			1 + min_unsigned((col + 1) * grid->block, grid->cols),
	};
}

void grid_sweep(const struct grid *grid, const struct area *area)
{
	for (unsigned row = area->row; row < area->row_end; row++) {
		const double *north = grid_row(grid, row - 1);
		const double *south = grid_row(grid, row + 1);
		double *here = grid_row(grid, row);
		double west = here[area->col - 1];

		/* Each cell waits for the one before: not by way of memory. */
		for (unsigned col = area->col; col < area->col_end; col++) {
			west = (north[col] + south[col] + west +
				here[col + 1]) /
			       4;
			here[col] = west;
		}
	}
}

uint64_t grid_sum(const struct grid *grid)
{
	uint64_t sum = 0;

	/* Rotated, so that rows that change places change the sum. */
	for (unsigned row = 1; row <= grid->rows; row++)
		sum = (sum << 1 | sum >> 63) ^
		      disk_sum(grid_row(grid, row) + 1,
			       grid->cols * sizeof(double));
	return sum;
}
