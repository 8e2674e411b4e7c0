/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The command line of heat, and of the peers that bench/apps compares it to. */
#include "heat.h"

enum { KEY_RESTART = 512, KEY_PENDING };

static const struct argp_option argp_options[] = {
	{ "rows", 'r', "N", 0, "rows of the plate (2048)", 0 },
	{ "cols", 'c', "N", 0, "columns of the plate (2048)", 0 },
	{ "block", 'b', "N", 0, "rows and columns of a block (256)", 0 },
	{ "iterations", 'i', "N", 0, "sweeps over the plate (100)", 0 },
	{ "pending", KEY_PENDING, "N", 0,
	  "checkpoints that may be under way at once (2)", 0 },
	{ "restart", KEY_RESTART, NULL, 0,
	  "go on from the last checkpoint in DIR", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
	struct heat_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->app;
		return 0;
	case 'r':
		options->rows = app_number(state, "rows", text, 1, 1u << 24);
		return 0;
	case 'c':
		options->cols = app_number(state, "cols", text, 1, 1u << 24);
		return 0;
	case 'b':
		options->block = app_number(state, "block", text, 1, 1u << 14);
		return 0;
	case 'i':
		options->sweeps =
			app_number(state, "iterations", text, 1, 1u << 30);
		return 0;
	case KEY_PENDING:
		options->pending =
			app_number(state, "pending", text, 1, PENDING_MAX);
		return 0;
	case KEY_RESTART:
		options->restart = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp option_parser = {
	.options = argp_options,
	.parser = parse_option,
	.doc = "Heat diffusion on a plate, by tasks, with checkpoints.\v"
	       "Start it by mpirun for several ranks.  Every --every sweeps "
	       "the plate goes to DIR/heat.RANK.0 or .1.",
	.children = app_argp_children,
};

void heat_options_parse(struct heat_options *options, int argc, char **argv)
{
	*options = (struct heat_options){ .app = { .dir = "." },
					  .rows = 2048,
					  .cols = 2048,
					  .block = 256,
					  .sweeps = 100,
					  .pending = 2 };
	argp_err_exit_status = 2;
	argp_parse(&option_parser, argc, argv, 0, NULL, options);
}
