/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <stdio.h>
#include <stdlib.h>

#include "apps/common/comm.h"
#include "apps/common/cost.h"
#include "fwi.h"

static const struct argp_option argp_options[] = {
	{ "x", 'x', "N", 0, "cells along X (104)", 0 },
	{ "y", 'y', "N", 0, "slices along Y, shared by the ranks (104)", 0 },
	{ "z", 'z', "N", 0, "cells along Z (104)", 0 },
	{ "steps", 's', "N", 0, "forward, and as many backward (30)", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
	struct fwi_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->app;
		return 0;
	case 'x':
		options->x =
			app_number(state, "x", text, 2 * HALF + 1, 1u << 14);
		return 0;
	case 'y':
		options->y = app_number(state, "y", text, 1, 1u << 16);
		return 0;
	case 'z':
		options->z =
			app_number(state, "z", text, 2 * HALF + 1, 1u << 14);
		return 0;
	case 's':
		options->steps = app_number(state, "steps", text, 1, 1u << 24);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp option_parser = {
	.options = argp_options,
	.parser = parse_option,
	.doc = "A mock-up of full-waveform inversion, by tasks.\v"
	       "Start it by mpirun for several ranks.  Every --every steps a "
	       "snapshot goes to a file in DIR that has no name; the backward "
	       "steps read it again.",
	.children = app_argp_children,
};

static int run_tasks(struct volume *volume, const struct fwi_options *options,
		     struct cost *cost)
{
	struct snapshots *snapshots;
	uint64_t written, read;
	int error = snapshots_open(&snapshots, volume, options, comm_rank(),
				   snapshots_of(options));

	if (error)
		return error;
	error = app_start(&options->app);
	if (!error) {
		comm_barrier();
		cost_begin(cost);
		error = graph_run(volume, options, snapshots);
		snapshots_cost(snapshots, &written, &read);
		if (!error)
			cost_end(cost, written, read);
		ktrt_stop();
	}
	snapshots_close(snapshots);
	return error;
}

static int run_alone(struct volume *volume, const struct fwi_options *options,
		     struct cost *cost)
{
	int error;

	cost_begin(cost);
	error = sequential_run(volume, options);
	if (error)
		return app_fail(error, "allocating snapshots");
	cost_end(cost, 0, 0);
	return 0;
}

static int run_model(const struct fwi_options *options, struct volume *volume)
{
	struct cost cost;
	char what[96];
	uint64_t sum;
	int error = options->app.sequential ? run_alone(volume, options, &cost)
					    : run_tasks(volume, options, &cost);

	if (error)
		return error;
	sum = cost_sum(volume_sum(volume), 3 * volume->slices);
	if (options->app.verify)
		error = verify_waves(volume, options);
	if (error || comm_rank())
		return error;
	snprintf(what, sizeof(what), "fwi: %u x %u x %u, %u + %u steps",
		 options->x, options->y, options->z, options->steps,
		 options->steps);
	cost_tell(&cost, options->app.json, what,
		  2.0 * options->x * options->y * options->z * options->steps,
		  sum);
	if (options->app.verify && !options->app.json)
		puts("verified: bit by bit as by one thread");
	return 0;
}

int main(int argc, char **argv)
{
	struct fwi_options options = {
		.app = { .dir = "." }, .x = 104, .y = 104, .z = 104, .steps = 30
	};
	struct volume volume;
	int error;

	argp_err_exit_status = 2;
	argp_parse(&option_parser, argc, argv, 0, NULL, &options);
	error = comm_open();
	if (error) {
		app_fail(error, "joining the other ranks");
		return 1;
	}
	if (comm_ranks() > 1 && (options.app.sequential ||
				 options.y < (unsigned)comm_ranks() * HALF)) {
		fprintf(stderr, "fwi: too many ranks\n");
		return 2;
	}
	error = volume_init(&volume, &options, comm_rank(), comm_ranks());
	if (error)
		app_fail(error, "allocating the volume");
	else
		error = run_model(&options, &volume);
	if (error && comm_ranks() > 1)
		comm_abort();
	volume_destroy(&volume);
	comm_close();
	return error ? 1 : 0;
}
