/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What one run leaves to the next: the count that it settled at, and, if
 * somebody counts, its account.
 */
#include "lib/account.h"
#include "lib/learn.h"
#include "lib/run.h"

/* Jobs of so many minimum chunks look up what is known of them; those that
 * ran so long may have learnt something. */
#define LARGE_CHUNKS 32
#define LEARN_NS 250000000

/* Reading what is known takes as long as some dozens of small chunks. */
void run_begin_known(struct run *run, unsigned max)
{
	bool large =
		run->units_total / LARGE_CHUNKS >= run->job.split.min_chunk;
	struct learn_entry known;

	if (!learn_find(run->ctl->name, large, &known))
		return;
	if (known.chunk_us && !run->ctl->chunk_us)
		run->job.split.target_ns = (uint64_t)known.chunk_us * 1000;
	/* The most there were then says nothing about more. */
	if (known.threads == known.max_threads && known.threads < max)
		kt_tune_begin(&run->tune, max, known.threads, run->units_total,
			      run->start_ns);
	else
		kt_tune_known(&run->tune, known.threads);
}

/* Jobs that were not held back by anybody know something. */
static void learn(struct run *run)
{
	unsigned threads = kt_tune_settled(&run->tune);
	bool free_to_choose = !(run->ctl->flags & KTASK_FIXED) &&
			      !run->ctl->max_threads && !run->ctl->cpus &&
			      !run->parent && !run->spares;

	if (threads && free_to_choose && !limits_idle_only() &&
	    run->end_ns - run->start_ns >= LEARN_NS)
		learn_job(run->ctl->name, threads, run->tune.max, run->end_ns);
}

static void account(const struct run *run, int error)
{
	struct account account = {
		.name = run->ctl->name,
		.error = error,
		.threads = run->threads,
		.lent = run->lent,
		.units = run->units,
		.chunks = run->chunks,
		.wall_ns = run->end_ns - run->start_ns,
		.caller_cpu_ns = run->caller_cpu_ns,
		.helper_cpu_ns = run->helper_cpu_ns,
	};

	account_job(&account);
}

void run_remember(struct run *run, int error)
{
	if (account_on())
		account(run, error);
	if (!error)
		learn(run);
}
