/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Claim: chunks are taken by compare-and-swap on the cursor of a range.  A worker whose
 * range is used up moves to the nearest range with work.
 *
 * A cursor only grows, and everything below it has been claimed.  That makes undo exact
 * without a record of each chunk.
 *
 * Locking: core/job.h.  A cursor moves by kt_cas(); if the job has an iterator, under
 * iter_lock.
 */
#include "core/claim.h"

/* Between a node's own memory (10) and another node's (at least 11 in any
 * table that makes sense): ranges that belong to no node. */
#define ANY_NODE_DISTANCE 11

static unsigned range_distance(int worker_node, int range_node)
{
	if (range_node == KT_NO_NODE)
		return ANY_NODE_DISTANCE;
	if (worker_node == KT_NO_NODE)
		return ANY_NODE_DISTANCE + 1;
	return kt_node_distance(worker_node, range_node);
}

static uint64_t left_in(const struct kt_range *range)
{
	return range->units - kt_load(&range->next);
}

/* The nearest range with work; of equally near ones the fullest. */
static bool find_nearest(const struct kt_job *job, int node, unsigned *found)
{
	unsigned best = 0;
	uint64_t most = 0;

	for (unsigned i = 0; i < job->nr_ranges; i++) {
		const struct kt_range *range = &job->ranges[i];
		uint64_t left = left_in(range);
		unsigned d;

		if (!left)
			continue;
		d = range_distance(node, range->node);
		if (most && (d > best || (d == best && left <= most)))
			continue;
		best = d;
		most = left;
		*found = i;
	}
	return most > 0;
}

unsigned kt_claim_home(const struct kt_job *job, int node, unsigned index)
{
	unsigned nr = 0, found = 0;

	if (job->nr_ranges == 1)
		return 0;
	for (unsigned i = 0; i < job->nr_ranges; i++)
		nr += job->ranges[i].node == node && left_in(&job->ranges[i]);
	if (!nr) {
		find_nearest(job, node, &found);
		return found;
	}
	index %= nr;
	for (unsigned i = 0; i < job->nr_ranges; i++) {
		if (job->ranges[i].node != node || !left_in(&job->ranges[i]))
			continue;
		found = i;
		if (!index--)
			break;
	}
	return found;
}

static uint64_t chunk_end(const struct kt_job *job,
			  const struct kt_range *range,
			  const struct kt_worker *worker, uint64_t from)
{
	uint64_t size = kt_split_size(&job->split, range->units - from,
				      kt_load(&job->threads), &worker->cost);
	/* An iterator's positions are no addresses: nothing to align. */
	uint64_t base = job->iter ? 0 : (uintptr_t)range->start;

	return kt_split_end(&job->split, base, from, size, range->units);
}

/* In the range, not below the minimum but for the last, and with aligned edges. */
static void assert_chunk(const struct kt_job *job, const struct kt_range *range,
			 uint64_t from, uint64_t to)
{
	uint64_t base = job->iter ? 0 : (uintptr_t)range->start;

	kt_assert(from < to && to <= range->units);
	kt_assert(to - from >= job->split.min_chunk || to == range->units);
	kt_assert(!((base + to) & (job->split.align - 1)) ||
		  to == range->units);
}

static bool claim_addresses(const struct kt_job *job, struct kt_range *range,
			    const struct kt_worker *worker,
			    struct kt_chunk *chunk)
{
	uint64_t from = kt_load(&range->next);
	uint64_t to;

	do {
		if (from >= range->units)
			return false;
		to = chunk_end(job, range, worker, from);
	} while (!kt_cas(&range->next, &from, to));
	assert_chunk(job, range, from, to);

	chunk->from = from;
	chunk->to = to;
	chunk->start = (void *)((uintptr_t)range->start + (uintptr_t)from);
	chunk->end = (void *)((uintptr_t)range->start + (uintptr_t)to);
	return true;
}

/*
 * Position and cursor must move together, and the client's iterator may take long.
 * Hence a lock for each range.  It is released before the chunk is done.
 */
static bool claim_iterated(const struct kt_job *job, struct kt_range *range,
			   const struct kt_worker *worker,
			   struct kt_chunk *chunk)
{
	uint64_t from;

	if (!left_in(range))
		return false;
	kt_iter_lock(&range->iter_lock);
	from = range->next;
	if (from < range->units) {
		chunk->from = from;
		chunk->to = chunk_end(job, range, worker, from);
		assert_chunk(job, range, from, chunk->to);
		chunk->start = range->iter_pos;
		chunk->end =
			job->iter(range->iter_pos, (size_t)(chunk->to - from));
		range->iter_pos = chunk->end;
		kt_store(&range->next, chunk->to);
	}
	kt_iter_unlock(&range->iter_lock);
	return from < range->units;
}

void kt_claim_leave(struct kt_job *job, struct kt_worker *worker)
{
	struct kt_range *range = &job->ranges[worker->range];

	if (!worker->range_chunks)
		return;
	kt_add(&range->chunks, worker->range_chunks);
	kt_add(&range->threads, 1);
	if (range->node != KT_NO_NODE && worker->node != KT_NO_NODE &&
	    range->node != worker->node)
		kt_add(&range->remote_chunks, worker->range_chunks);
	worker->range_chunks = 0;
}

bool kt_claim(struct kt_job *job, struct kt_worker *worker,
	      struct kt_chunk *chunk)
{
	kt_assert(!worker->failed);
	while (job->nr_ranges) {
		struct kt_range *range = &job->ranges[worker->range];
		unsigned next;

		if (job->iter ? claim_iterated(job, range, worker, chunk)
			      : claim_addresses(job, range, worker, chunk))
			return true;
		if (!find_nearest(job, worker->node, &next))
			return false;
		kt_claim_leave(job, worker);
		worker->range = next;
	}
	return false;
}
