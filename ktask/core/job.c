/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Job: the loop that every thread of a job runs, and how a job stops.
 *
 * The first error in time is the job's.  Chunks that run at that moment end normally,
 * count as done, and are undone (core/undo.c).
 *
 * Locking: core/job.h.
 */
#include "core/claim.h"
#include "core/job.h"

static bool range_fits(const struct kt_job *job, const struct kt_range *range)
{
	return job->iter ||
	       range->units <= UINTPTR_MAX - (uintptr_t)range->start;
}

int kt_job_check(const struct kt_job *job)
{
	const struct kt_split *split = &job->split;
	uint64_t sum = 0;

	if (!job->func || !split->min_chunk)
		return -EINVAL;
	if (!split->align || (split->align & (split->align - 1)))
		return -EINVAL;
	for (unsigned i = 0; i < job->nr_ranges; i++) {
		if (!range_fits(job, &job->ranges[i]))
			return -EINVAL;
		if (job->ranges[i].units > UINT64_MAX - sum)
			return -EINVAL;
		sum += job->ranges[i].units;
	}
	return 0;
}

void kt_job_begin(struct kt_job *job)
{
	job->threads = 1;
	job->error = 0;
	job->cost.mean = 0;
	job->cost.high = 0;
	for (unsigned i = 0; i < job->nr_ranges; i++) {
		struct kt_range *range = &job->ranges[i];

		range->dealt = 0;
		range->next = 0;
		range->iter_pos = range->start;
		kt_iter_lock_init(&range->iter_lock);
		range->chunks = 0;
		range->remote_chunks = 0;
		range->threads = 0;
	}
}

void kt_worker_begin_at(struct kt_worker *worker, const struct kt_job *job,
			int node, unsigned range)
{
	worker->node = node;
	worker->range = range;
	worker->cost.mean = kt_load(&job->cost.mean);
	/* Stored one after the other: a reader may see a new and an old half. */
	worker->cost.high = KT_MAX(kt_load(&job->cost.high), worker->cost.mean);
	worker->chunks = 0;
	kt_store(&worker->units, 0);
	worker->end_ns = 0;
	worker->largest_chunk = 0;
	worker->range_chunks = 0;
	worker->failed = false;
	worker->error = 0;
	worker->fail_pos = NULL;
}

void kt_worker_begin(struct kt_worker *worker, const struct kt_job *job,
		     int node, unsigned index)
{
	kt_worker_begin_at(worker, job, node, kt_claim_home(job, node, index));
}

void kt_job_stop(struct kt_job *job, int error)
{
	uint32_t none = 0;

	kt_assert(error);
	/* 0 means that there is no error yet.  One access, and the last one to
	 * the job: a thread that sees the error may free the job. */
	kt_cas(&job->error, &none, (uint32_t)error);
}

int kt_job_error(const struct kt_job *job)
{
	return (int)kt_load_acquire(&job->error);
}

bool kt_job_idle(const struct kt_job *job)
{
	for (unsigned i = 0; i < job->nr_ranges; i++)
		if (kt_load(&job->ranges[i].next) < job->ranges[i].units)
			return false;
	return true;
}

uint64_t kt_job_units(const struct kt_job *job)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < job->nr_ranges; i++)
		sum += job->ranges[i].units;
	return sum;
}

/*
 * The job's cost tells workers that join later, and workers in a cheap stretch, about
 * expensive units.  If a worker's cost is far below the job's, the worker has never met
 * such units and takes the job's cost.  If it is a little below, the worker's estimate
 * has decayed, and the job takes that.  A race may lose an update, which makes the size
 * of a chunk a little wrong.
 */
static void share_cost(struct kt_job *job, struct kt_worker *worker)
{
	uint64_t high = kt_load(&job->cost.high);
	uint64_t own = worker->cost.high;

	if (own < high / 2) {
		worker->cost.high = high;
	} else if (own < high - high / 4 || own > high + high / 4) {
		kt_store(&job->cost.high, own);
		kt_store(&job->cost.mean, worker->cost.mean);
	}
}

static void chunk_failed(struct kt_job *job, struct kt_worker *worker,
			 const struct kt_chunk *chunk, int error)
{
	/* Undo relies on it: one failed chunk for each worker. */
	kt_assert(!worker->failed);
	worker->failed = true;
	worker->error = error;
	worker->fail = *chunk;
	kt_job_stop(job, error);
}

/* The clock of another CPU, to which the thread was moved, may be behind. */
static uint64_t elapsed_ns(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void chunk_done(struct kt_job *job, struct kt_worker *worker,
		       const struct kt_chunk *chunk, uint64_t ns)
{
	uint64_t units = chunk->to - chunk->from;

	kt_trace_chunk(chunk->start, units, ns);
	worker->chunks++;
	worker->range_chunks++;
	kt_store(&worker->units, worker->units + units);
	worker->largest_chunk = KT_MAX(worker->largest_chunk, units);
	kt_cost_add(&worker->cost, units, ns);
	share_cost(job, worker);
}

void kt_job_work(struct kt_job *job, struct kt_worker *worker)
{
	uint64_t now = kt_now_ns();
	struct kt_chunk chunk;

	while (!kt_job_stopped(job)) {
		int error;

		if (job->deadline_ns && now >= job->deadline_ns) {
			if (!kt_job_idle(job))
				kt_job_stop(job, -ETIMEDOUT);
			break;
		}
		if (!kt_claim(job, worker, &chunk))
			break;
		worker->fail_pos = NULL;
		error = job->func(chunk.start, chunk.end, job->arg);
		worker->end_ns = kt_now_ns();
		if (error) {
			chunk_failed(job, worker, &chunk, error);
			break;
		}
		chunk_done(job, worker, &chunk,
			   elapsed_ns(now, worker->end_ns));
		now = worker->end_ns;
		if (!worker->tick)
			continue;
		if (worker->tick(worker, now))
			break;
		/* It may have paused. */
		now = kt_now_ns();
	}
	kt_claim_leave(job, worker);
}
