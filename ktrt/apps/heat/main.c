/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <stdio.h>
#include <stdlib.h>

#include "apps/common/comm.h"
#include "apps/common/cost.h"
#include "heat.h"

#define TAG_NEWEST 31001
#define TAG_AGREED 31002

/* The newest checkpoint that every rank has; 0: none. */
static unsigned agree_on_newest(unsigned newest)
{
	unsigned other;

	if (comm_rank()) {
		comm_send(&newest, sizeof(newest), 0, TAG_NEWEST);
		comm_recv(&newest, sizeof(newest), 0, TAG_AGREED);
		return newest;
	}
	for (int rank = 1; rank < comm_ranks(); rank++) {
		comm_recv(&other, sizeof(other), rank, TAG_NEWEST);
		newest = other < newest ? other : newest;
	}
	for (int rank = 1; rank < comm_ranks(); rank++)
		comm_send(&newest, sizeof(newest), rank, TAG_AGREED);
	return newest;
}

static int restore_newest(struct checkpoints *checkpoints, struct grid *grid,
			  const struct heat_options *options, unsigned *from)
{
	unsigned newest;
	int error = checkpoints_newest(checkpoints, &newest);

	/* With several ranks it ends them all. */
	if (error)
		return error;
	*from = agree_on_newest(newest);
	if (*from > options->sweeps) {
		fprintf(stderr,
			"heat: restarting: the checkpoint is of sweep %u, "
			"after the last that is wanted\n",
			*from);
		return -1;
	}
	return *from ? checkpoints_load(checkpoints, grid, *from) : 0;
}

static int run_tasks(struct grid *grid, const struct heat_options *options,
		     struct checkpoints *checkpoints, unsigned from,
		     struct cost *cost)
{
	int error = app_start(&options->app);

	if (error)
		return error;
	comm_barrier();
	cost_begin(cost);
	error = graph_run(grid, options, checkpoints, from);
	if (!error)
		cost_end(cost, checkpoints_bytes(checkpoints), 0);
	ktrt_stop();
	return error;
}

/* The last checkpoint is read back and compared as well. */
static int verify_all(struct grid *grid, const struct heat_options *options,
		      struct checkpoints *checkpoints)
{
	unsigned last = checkpoints_last(checkpoints);
	int error = verify_grid(grid, options, options->sweeps, "the result");

	if (error || !last)
		return error;
	error = checkpoints_load(checkpoints, grid, last);
	return error ? error
		     : verify_grid(grid, options, last, "the last checkpoint");
}

static int run_model(const struct heat_options *options, struct grid *grid,
		     struct checkpoints *checkpoints)
{
	struct cost cost;
	unsigned from = 0;
	char what[96];
	uint64_t sum;
	int error = 0;

	if (options->restart)
		error = restore_newest(checkpoints, grid, options, &from);
	if (error)
		return error;
	if (options->app.sequential) {
		cost_begin(&cost);
		sequential_run(grid, options->sweeps - from);
		cost_end(&cost, 0, 0);
	} else {
		error = run_tasks(grid, options, checkpoints, from, &cost);
	}
	if (error)
		return error;
	sum = cost_sum(grid_sum(grid), grid->rows);
	if (options->app.verify)
		error = verify_all(grid, options, checkpoints);
	if (error || comm_rank())
		return error;
	snprintf(what, sizeof(what), "heat: %u x %u, blocks of %u, %u sweeps",
		 options->rows, options->cols, options->block,
		 options->sweeps - from);
	cost_tell(&cost, options->app.json, what,
		  (double)options->rows * options->cols *
			  (options->sweeps - from),
		  sum);
	if (options->app.verify && !options->app.json)
		puts("verified: bit by bit as by one thread");
	return 0;
}

int main(int argc, char **argv)
{
	struct heat_options options;
	struct checkpoints *checkpoints = NULL;
	struct grid grid;
	int error;

	heat_options_parse(&options, argc, argv);
	error = comm_open();
	if (error) {
		app_fail(error, "joining the other ranks");
		return 1;
	}
	if (options.rows < (unsigned)comm_ranks() ||
	    (options.app.sequential && comm_ranks() > 1)) {
		fprintf(stderr, "heat: too many ranks\n");
		return 2;
	}
	error = grid_init(&grid, &options, comm_rank(), comm_ranks());
	if (error)
		app_fail(error, "allocating the plate");
	else
		error = checkpoints_open(&checkpoints, &grid, &options,
					 comm_rank());
	if (!error)
		error = run_model(&options, &grid, checkpoints);
	if (error && comm_ranks() > 1)
		comm_abort();
	checkpoints_close(checkpoints);
	grid_destroy(&grid);
	comm_close();
	return error ? 1 : 0;
}
