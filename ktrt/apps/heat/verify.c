/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/comm.h"
#include "heat.h"

#define TAG_ROWS 31000

void sequential_run(struct grid *grid, unsigned sweeps)
{
	struct area all = { 1, grid->rows + 1, 1, grid->cols + 1 };

	for (unsigned sweep = 0; sweep < sweeps; sweep++)
		grid_sweep(grid, &all);
}

/* Rank 0 compares rows [first, first + nr) of the plate. */
static int compare_rows(const struct grid *plate, unsigned first, unsigned nr,
			const double *cells, const char *what)
{
	size_t width = plate->cols + 2;

	for (unsigned row = 0; row < nr; row++) {
		const double *expected = grid_row(plate, first + row + 1) + 1;

		if (!memcmp(expected, cells + row * width + 1,
			    plate->cols * sizeof(double)))
			continue;
		fprintf(stderr, "heat: verifying: %s: row %u differs\n", what,
			first + row);
		return -EILSEQ;
	}
	return 0;
}

static int judge_grid(const struct grid *own,
		      const struct heat_options *options, unsigned sweeps,
		      const char *what)
{
	struct grid plate, part;
	int error = grid_init(&plate, options, 0, 1);

	if (error)
		return app_fail(error, "verifying");
	sequential_run(&plate, sweeps);
	error = compare_rows(&plate, 0, own->rows, grid_row(own, 1), what);
	for (int rank = 1; rank < comm_ranks(); rank++) {
		int worse = grid_init(&part, options, rank, comm_ranks());

		if (worse) {
			app_fail(worse, "verifying");
			comm_abort();
		}
		for (unsigned row = 1; row <= part.rows; row++)
			comm_recv(grid_row(&part, row),
				  (part.cols + 2) * sizeof(double), rank,
				  TAG_ROWS);
		if (!error)
			error = compare_rows(&plate, part.first, part.rows,
					     grid_row(&part, 1), what);
		grid_destroy(&part);
	}
	grid_destroy(&plate);
	return error;
}

int verify_grid(const struct grid *grid, const struct heat_options *options,
		unsigned sweeps, const char *what)
{
	if (!comm_rank())
		return judge_grid(grid, options, sweeps, what);
	for (unsigned row = 1; row <= grid->rows; row++)
		comm_send(grid_row(grid, row),
			  (grid->cols + 2) * sizeof(double), 0, TAG_ROWS);
	return 0;
}
