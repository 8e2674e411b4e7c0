/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * OpenMP, schedule(dynamic).  Its team stays between parallel regions and
 * spins for a while after each; the benchmark pauses before the next peer.
 */
#include <omp.h>

#include "peer.h"

static int start_threads(unsigned threads)
{
	omp_set_dynamic(0);
	omp_set_num_threads((int)threads);
	return 0;
}

static int run_job(const struct peer_job *job)
{
	size_t chunk = job->chunk_units;
	size_t nr_chunks = (job->nr_units + chunk - 1) / chunk;

#pragma omp parallel for schedule(dynamic)
	for (size_t i = 0; i < nr_chunks; i++) {
		size_t first = i * chunk;
		size_t last =
			i + 1 == nr_chunks ? job->nr_units : first + chunk;

		job->work(first, last, job->arg);
	}
	return 0;
}

static void stop_threads(void)
{
	omp_pause_resource_all(omp_pause_soft);
}

const struct peer peer_openmp = {
	.name = "OpenMP dynamic",
	.chunked = 1,
	.start = start_threads,
	.run = run_job,
	.stop = stop_threads,
};
