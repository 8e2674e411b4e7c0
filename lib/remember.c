/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a job begins with, if its operation was measured, and, if somebody counts,
 * the account that it leaves.
 */
#include "lib/account.h"
#include "lib/learn.h"
#include "lib/job.h"

/* Jobs of so many minimum chunks look up what is known of them. */
#define LARGE_CHUNKS 32

/* Reading what is known takes as long as some dozens of small chunks. */
void job_begin_known(struct user_job *job, unsigned max)
{
	bool large = job->ctx.units_total / LARGE_CHUNKS >=
		     job->ctx.job.split.min_chunk;
	struct learn_entry known;

	if (!learn_find(job->ctl->name, large, &known))
		return;
	if (known.chunk_us && !job->ctl->chunk_us)
		job->ctx.job.split.target_ns = (uint64_t)known.chunk_us * 1000;
	/* The most there were then says nothing about more. */
	if (known.threads < known.max_threads || known.threads >= max)
		kt_tune_known(&job->ctx.tune, known.threads);
}

void job_account(const struct user_job *job, int error)
{
	struct account account = {
		.name = job->ctl->name,
		.error = error,
		.threads = job->ctx.threads,
		.lent = job->ctx.lent,
		.units = job->ctx.units,
		.chunks = job->ctx.chunks,
		.wall_ns = job->ctx.end_ns - job->ctx.start_ns,
		.caller_cpu_ns = job->ctx.caller_cpu_ns,
		.helper_cpu_ns = job->ctx.helper_cpu_ns,
	};

	if (account_on())
		account_job(&account);
}
