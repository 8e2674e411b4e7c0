// SPDX-License-Identifier: GPL-2.0-only
/*
 * The neighbour: a job as padata's multithreaded jobs are done, which modules
 * cannot call.  From its description (Documentation/core-api/padata.rst): pieces
 * of equal size, several for each thread, one lock around the position, helpers
 * from a workqueue, the caller does its part and waits.
 */
#include <linux/completion.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "bench.h"

#define PIECES_PER_THREAD 4

struct job {
	spinlock_t lock;
	unsigned long next, end, piece;
	int (*func)(void *start, void *end, void *arg);
	void *arg;
	int error;
	atomic_t working;
	struct completion done;
};

struct helper {
	struct work_struct work;
	struct job *job;
};

static void take_pieces(struct job *job)
{
	spin_lock(&job->lock);
	while (job->next < job->end) {
		unsigned long start = job->next;
		unsigned long end = min(start + job->piece, job->end);
		int error;

		job->next = end;
		spin_unlock(&job->lock);
		error = job->func((void *)start, (void *)end, job->arg);
		spin_lock(&job->lock);
		if (error && !job->error)
			job->error = error;
	}
	spin_unlock(&job->lock);
}

static void leave_job(struct job *job)
{
	if (atomic_dec_and_test(&job->working))
		complete(&job->done);
}

static void run_helper(struct work_struct *work)
{
	struct job *job = container_of(work, struct helper, work)->job;

	take_pieces(job);
	leave_job(job);
}

int padata_run(unsigned long nr, unsigned long min_chunk, unsigned int threads,
	       int (*func)(void *start, void *end, void *arg), void *arg)
{
	struct job job = { .end = nr, .func = func, .arg = arg };
	struct helper *helpers;
	unsigned int i;

	threads = clamp(nr / min_chunk, 1ul, (unsigned long)threads);
	job.piece = max(nr / (threads * PIECES_PER_THREAD), min_chunk);
	helpers = kcalloc(threads, sizeof(*helpers), GFP_KERNEL);
	if (!helpers)
		return -ENOMEM;
	spin_lock_init(&job.lock);
	init_completion(&job.done);
	atomic_set(&job.working, threads);
	for (i = 1; i < threads; i++) {
		helpers[i].job = &job;
		INIT_WORK(&helpers[i].work, run_helper);
		queue_work(system_unbound_wq, &helpers[i].work);
	}
	take_pieces(&job);
	leave_job(&job);
	wait_for_completion(&job.done);
	/* The last of them may still be in its work item. */
	for (i = 1; i < threads; i++)
		flush_work(&helpers[i].work);
	kfree(helpers);
	return job.error;
}
