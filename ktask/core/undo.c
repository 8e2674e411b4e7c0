/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Undo: everything below the cursor of a range was claimed.  A claimed chunk either
 * succeeded, or it is the failed chunk of a worker; each worker has one at most.  So what
 * succeeded is what lies between the failed chunks.
 *
 * Quadratic in the number of failed chunks, which is at most the number of threads.  This
 * runs once for a failed job.
 */
#include "core/undo.h"

typedef const struct kt_worker *worker_at_fn(void *host, unsigned index);

/* The first failed chunk of range @range that starts at or after @from. */
static const struct kt_worker *next_failure(worker_at_fn *worker_at, void *host,
					    unsigned nr_workers, unsigned range,
					    uint64_t from)
{
	const struct kt_worker *found = NULL;

	for (unsigned i = 0; i < nr_workers; i++) {
		const struct kt_worker *worker = worker_at(host, i);

		if (!worker->failed || worker->range != range ||
		    worker->fail.from < from)
			continue;
		if (!found || worker->fail.from < found->fail.from)
			found = worker;
	}
	return found;
}

static void *claimed_end(const struct kt_job *job, const struct kt_range *range)
{
	if (job->iter)
		return range->iter_pos;
	return (void *)((uintptr_t)range->start + (uintptr_t)range->next);
}

static void undo_range(struct kt_job *job, unsigned index,
		       worker_at_fn *worker_at, void *host, unsigned nr_workers)
{
	struct kt_range *range = &job->ranges[index];
	void *start = range->start;
	uint64_t from = 0;

	while (from < range->next) {
		const struct kt_worker *failed =
			next_failure(worker_at, host, nr_workers, index, from);
		uint64_t to = failed ? failed->fail.from : range->next;
		void *end =
			failed ? failed->fail.start : claimed_end(job, range);

		kt_assert(from <= to && to <= range->next);
		if (to > from)
			job->undo(start, end, job->arg);
		if (!failed)
			break;
		from = failed->fail.to;
		start = failed->fail.end;
	}
}

void kt_undo(struct kt_job *job, worker_at_fn *worker_at, void *host,
	     unsigned nr_workers)
{
	if (!job->undo)
		return;
	for (unsigned i = 0; i < job->nr_ranges; i++)
		undo_range(job, i, worker_at, host, nr_workers);
}

const struct kt_worker *kt_undo_lowest(worker_at_fn *worker_at, void *host,
				       unsigned nr_workers)
{
	const struct kt_worker *lowest = NULL;

	for (unsigned i = 0; i < nr_workers; i++) {
		const struct kt_worker *worker = worker_at(host, i);

		if (!worker->failed)
			continue;
		if (!lowest || worker->range < lowest->range ||
		    (worker->range == lowest->range &&
		     worker->fail.from < lowest->fail.from))
			lowest = worker;
	}
	return lowest;
}
