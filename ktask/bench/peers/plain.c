/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program as it is without any of this: one call, one thread.
 */
#include "peer.h"

static int start_threads(unsigned threads)
{
	return 0;
}

static int run_job(const struct peer_job *job)
{
	job->work(0, job->nr_units, job->arg);
	return 0;
}

static void stop_threads(void)
{
}

const struct peer peer_plain = {
	.name = "plain loop",
	.start = start_threads,
	.run = run_job,
	.stop = stop_threads,
};
