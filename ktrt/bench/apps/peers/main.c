/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A peer of heat, with its options and its output, for one rank.  Only
 * peer_run() differs from peer to peer.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "apps/common/cost.h"
#include "apps/heat/heat.h"
#include "peer.h"

struct peer {
	struct grid grid;
	struct checkpoints *all;
	struct checkpoint *open[2];
	unsigned every;
	_Atomic int error; /* the first */
};

static struct checkpoint **open_of(struct peer *peer, unsigned sweep)
{
	return &peer->open[sweep / peer->every % 2];
}

static void keep_error(struct peer *peer, int error)
{
	int none = 0;

	if (error)
		atomic_compare_exchange_strong(&peer->error, &none, error);
}

void peer_block(struct peer *peer, unsigned sweep, unsigned row, unsigned col)
{
	struct area area = grid_area(&peer->grid, row, col);

	grid_sweep(&peer->grid, &area);
	if (peer->every && sweep % peer->every == 0 && *open_of(peer, sweep))
		keep_error(peer,
			   checkpoint_block(*open_of(peer, sweep), row, col));
}

void peer_begin(struct peer *peer, unsigned sweep)
{
	struct checkpoint *new = NULL;

	keep_error(peer, checkpoint_begin(peer->all, sweep, &new));
	*open_of(peer, sweep) = new;
}

void peer_seal(struct peer *peer, unsigned sweep)
{
	struct checkpoint *checkpoint = *open_of(peer, sweep);

	if (!checkpoint)
		return;
	keep_error(peer, checkpoint_seal(checkpoint));
	keep_error(peer, checkpoint_end(checkpoint));
}

static int run_plan(struct peer *peer, const struct heat_options *options)
{
	struct plan plan = { .peer = peer,
			     .rows = peer->grid.block_rows,
			     .cols = peer->grid.block_cols,
			     .sweeps = options->sweeps,
			     .every = options->app.every,
			     .workers = options->app.workers };
	struct cost cost;
	char what[96];

	if (!plan.workers)
		plan.workers = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	cost_begin(&cost);
	cost.workers = plan.workers;
	peer_run(&plan);
	cost_end(&cost, checkpoints_bytes(peer->all), 0);
	if (peer->error)
		return peer->error;
	snprintf(what, sizeof(what), "heat: %u x %u, blocks of %u, %u sweeps",
		 options->rows, options->cols, options->block, options->sweeps);
	cost_tell(&cost, options->app.json, what,
		  (double)options->rows * options->cols * options->sweeps,
		  grid_sum(&peer->grid));
	return 0;
}

int main(int argc, char **argv)
{
	struct heat_options options;
	struct peer peer = { 0 };
	int error;

	heat_options_parse(&options, argc, argv);
	peer.every = options.app.every;
	error = grid_init(&peer.grid, &options, 0, 1);
	if (error)
		app_fail(error, "allocating the plate");
	else
		error = checkpoints_open(&peer.all, &peer.grid, &options, 0);
	if (!error)
		error = run_plan(&peer, &options);
	checkpoints_close(peer.all);
	grid_destroy(&peer.grid);
	return error ? 1 : 0;
}
