/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The count with which a job begins, if its operation was tuned, and the line that it
 * writes for `ktask stat`, if that runs.
 */
#include "user/account.h"
#include "user/history/autotune.h"
#include "user/user_job.h"

/* Jobs of so many minimum chunks may read the file of the autotune cache: that takes as
 * long as some dozens of small chunks. */
#define LARGE_CHUNKS 32

void job_begin_tuned(struct user_job *job, unsigned max)
{
	bool large = job->ctx.units_total / LARGE_CHUNKS >=
		     job->ctx.job.split.min_chunk;
	struct autotune_entry tuned;

	if (!autotune_find(job->ctl->name, large, &tuned))
		return;
	if (tuned.chunk_us && !job->ctl->chunk_us)
		job->ctx.job.split.target_ns = (uint64_t)tuned.chunk_us * 1000;
	/* If all threads were best, more may be better now. */
	if (tuned.threads < tuned.max_threads || tuned.threads >= max)
		kt_tune_known(&job->ctx.tune, tuned.threads);
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
