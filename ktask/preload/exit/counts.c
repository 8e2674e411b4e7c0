/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counting for the report: see counts.h.  Makes no system calls but those by which
 * shim_leave() finds out whether it may count.
 */
#include <string.h>

#include "counts.h"

struct shim_counts shim_counts;
_Atomic size_t shim_largest_small;

void shim_counts_reset(void)
{
	memset(&shim_counts, 0, sizeof(shim_counts));
	atomic_store(&shim_largest_small, 0);
}

static void add_sum(struct shim_sum *sum, size_t bytes)
{
	atomic_fetch_add(&sum->calls, 1);
	atomic_fetch_add(&sum->bytes, bytes);
}

static void raise_threads(struct shim_taken *taken, unsigned threads)
{
	unsigned most = atomic_load(&taken->threads);

	while (threads > most &&
	       !atomic_compare_exchange_weak(&taken->threads, &most, threads))
		;
}

void shim_count(enum shim_call call, const struct shim_work *work)
{
	struct shim_taken *taken = &shim_counts.taken[call];

	atomic_fetch_add(&taken->calls, 1);
	atomic_fetch_add(&taken->plain, !work->done);
	atomic_fetch_add(&taken->bytes, work->done ? work->bytes : 0);
	atomic_fetch_add(&taken->ns, work->wall_ns);
	atomic_fetch_add(&taken->cpu_ns, work->cpu_ns);
	atomic_fetch_add(&taken->undivided, work->undivided);
	atomic_fetch_add(&taken->present, work->done && work->present);
	if (work->done && work->threads > 1 && work->cpu_ns > work->wall_ns)
		atomic_fetch_add(&taken->saved_ns,
				 work->cpu_ns - work->wall_ns);
	raise_threads(taken, work->threads);
	shim_record_taken(work->done ? work->bytes : 0);
}

/* More than a few pages are there, and none of them in order. */
static bool is_random(const struct shim_watched *watched)
{
	return !watched->moving && watched->scattered > watched->touched &&
	       watched->scattered > watched->bytes / 100;
}

void shim_count_watched(const struct shim_watched *watched)
{
	struct shim_ahead *ahead = &shim_counts.ahead;

	atomic_fetch_add(&ahead->mappings, 1);
	atomic_fetch_add(&ahead->bytes, watched->bytes);
	atomic_fetch_add(&ahead->first, watched->first);
	atomic_fetch_add(&ahead->touched, watched->touched);
	atomic_fetch_add(&ahead->wasted, watched->wasted);
	atomic_fetch_add(&ahead->advised, watched->advised);
	if (watched->made)
		return;
	if (watched->short_of_memory)
		atomic_fetch_add(&ahead->memory, 1);
	else if (watched->unhelped)
		atomic_fetch_add(&ahead->unhelped, 1);
	else if (is_random(watched))
		atomic_fetch_add(&ahead->random, 1);
}

void shim_count_ahead(size_t bytes, uint64_t cpu_ns)
{
	atomic_fetch_add(&shim_counts.ahead.made, bytes);
	atomic_fetch_add(&shim_counts.ahead.cpu_ns, cpu_ns);
	if (!bytes)
		return;
	atomic_fetch_add(&shim_counts.ahead.windows, 1);
	shim_record_taken(bytes);
}

bool shim_counted(void)
{
	if (atomic_load(&shim_counts.ahead.mappings) ||
	    atomic_load(&shim_counts.would.calls))
		return true;
	for (int i = 0; i < SHIM_NR_CALLS; i++)
		if (atomic_load(&shim_counts.taken[i].calls))
			return true;
	for (int i = 0; i < SHIM_NR_LEFT; i++)
		if (atomic_load(&shim_counts.left[i].calls))
			return true;
	for (int i = 0; i < SHIM_NR_WHY; i++)
		if (atomic_load(&shim_counts.declined[i].calls))
			return true;
	return false;
}

void shim_leave(enum shim_left what, size_t bytes)
{
	if (!shim_tells() || shim_busy() || !shim_filter_allows() ||
	    !shim_is_ours())
		return;
	add_sum(&shim_counts.left[what], bytes);
	shim_record_left(bytes);
	shim_say_left(what, bytes);
}

void shim_decline(enum shim_why why, size_t bytes)
{
	/* The size of a call without a range is not known yet. */
	if (bytes == SIZE_MAX)
		return;
	add_sum(&shim_counts.declined[why], bytes);
	shim_record_left(bytes);
}
