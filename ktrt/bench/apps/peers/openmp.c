/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* OpenMP tasks with dependences (4.0), for gcc's and clang's runtime. */
#include <stdlib.h>

#include "peer.h"

/*
 * Names of data: a frame of blocks that nobody writes stands around the plate,
 * so that each block has four neighbours.
 */
struct names {
	char *blocks;
	unsigned width;
	char slots[2], begins, seals;
};

static void spawn_block(const struct plan *plan, struct names *names,
			unsigned sweep, unsigned row, unsigned col)
{
	char *own = &names->blocks[(row + 1) * names->width + col + 1];
	char *north = own - names->width, *south = own + names->width;
	char *west = own - 1, *east = own + 1;
	char *slot;

	if (!plan_writes(plan, sweep)) {
#pragma omp task depend(in : *north, *south, *west, *east) depend(inout : *own)
		peer_block(plan->peer, sweep, row, col);
		return;
	}
	slot = &names->slots[sweep / plan->every % 2];
#pragma omp task depend(in                                                  \
			: *north, *south, *west, *east, *slot) depend(inout \
								      : *own)
	peer_block(plan->peer, sweep, row, col);
}

static void spawn_sweep(const struct plan *plan, struct names *names,
			unsigned sweep)
{
	bool writes = plan_writes(plan, sweep);
	char *slot = &names->slots[writes ? sweep / plan->every % 2 : 0];
	char *begins = &names->begins, *seals = &names->seals;

	if (writes) {
#pragma omp task depend(inout : *slot, *begins)
		peer_begin(plan->peer, sweep);
	}
	for (unsigned row = 0; row < plan->rows; row++)
		for (unsigned col = 0; col < plan->cols; col++)
			spawn_block(plan, names, sweep, row, col);
	if (writes) {
#pragma omp task depend(inout : *slot, *seals)
		peer_seal(plan->peer, sweep);
	}
}

void peer_run(const struct plan *plan)
{
	struct names names = { .width = plan->cols + 2 };

	names.blocks = malloc((size_t)names.width * (plan->rows + 2));
	if (!names.blocks)
		abort();
#pragma omp parallel num_threads(plan->workers)
#pragma omp single
	for (unsigned sweep = 1; sweep <= plan->sweeps; sweep++)
		spawn_sweep(plan, &names, sweep);
	free(names.blocks);
}
