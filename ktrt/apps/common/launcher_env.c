/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the launcher says of the ranks: Open MPI by a variable of its own, MPICH
 * and Slurm by that of PMI; PMIx tells the rank only.
 */
#include <stdlib.h>

#include "comm.h"

static int number_in(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : -1;
}

int comm_started(void)
{
	int ranks = number_in("OMPI_COMM_WORLD_SIZE");

	if (ranks < 1)
		ranks = number_in("PMI_SIZE");
	if (ranks < 1)
		ranks = number_in("PMIX_RANK") + 1;
	return ranks > 0 ? ranks : 0;
}
