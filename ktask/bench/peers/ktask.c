/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libktask.  Where the job is one of its operations the operation is run, as
 * a program would do it; otherwise ktask_run() with chunks of at least one
 * unit: it sizes them itself.
 */
#include <errno.h>
#include <stdint.h>

#include <ktask/ops.h>

#include "peer.h"

static int start_threads(unsigned threads)
{
	return 0;
}

static int do_chunk(void *start, void *end, void *arg)
{
	const struct peer_job *job = arg;

	job->work((uintptr_t)start, (uintptr_t)end, job->arg);
	return 0;
}

static int run_threads(const struct peer_job *job, unsigned threads)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = job->addr,
				      .len = job->len };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	DEFINE_KTASK_CTL(ctl, do_chunk, (void *)job, 1);

	if (!job->operation) {
		ktask_ctl_set_max_threads(&ctl, threads);
		return -ktask_run(NULL, job->nr_units, &ctl);
	}
	opts.max_threads = threads;
	return -ktask_op_run(ktask_op_find(job->operation), &args, &opts);
}

static int run_job(const struct peer_job *job)
{
	return run_threads(job, job->threads);
}

static int run_one(const struct peer_job *job)
{
	return run_threads(job, 1);
}

static void stop_threads(void)
{
	ktask_trim();
}

const struct peer peer_ktask = {
	.name = "libktask",
	.start = start_threads,
	.run = run_job,
	.stop = stop_threads,
};

/* Shares the pool with the other, which it never uses. */
static void stop_one(void)
{
}

const struct peer peer_ktask_one = {
	.name = "libktask",
	.start = start_threads,
	.run = run_one,
	.stop = stop_one,
};
