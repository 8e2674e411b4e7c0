/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reductions as dependences: each thread adds to a copy of its own, and what
 * comes after the tasks of a reduction finds the copies combined.
 *
 * Copies belong to an epoch.  They are made when a task asks for its thread's,
 * and combined by whoever ends the epoch, or by the parent where nobody follows:
 * in a wait, or before the datum is used otherwise.
 *
 * Behaves badly with large data and many threads: each has a whole copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dependences.h"

bool reduction_is_valid(const struct ktrt_reduction *reduction)
{
	return reduction && reduction->struct_size >= sizeof(*reduction) &&
	       reduction->bytes && reduction->combine;
}

void sum_combine(struct sum *sum)
{
	void **copies = sum->copies;

	if (!copies)
		return;
	sum->copies = NULL;
	for (unsigned i = 0; i < rt.nr_slots; i++)
		if (copies[i]) {
			sum->of->combine(sum->of->data, copies[i],
					 sum->of->arg);
			free(copies[i]);
		}
	free(copies);
}

/* Of the task or, as its children may add too, one above it. */
static struct sum *find_sum(const struct ktrt_task *task,
			    const struct ktrt_reduction *reduction)
{
	for (; task; task = task->parent)
		for (uint32_t i = 0; i < task->nr_access; i++) {
			struct epoch *epoch = task->access[i].epoch;

			if (epoch_mode(epoch) == KTRT_REDUCTION &&
			    epoch->sum.of == reduction)
				return &epoch->sum;
		}
	return NULL;
}

/* One word for each thread, by whoever comes first. */
static void **copies_of(struct sum *sum)
{
	void **copies = at_load(&sum->copies), **mine;

	if (copies)
		return copies;
	mine = calloc(rt.nr_slots, sizeof(*mine));
	if (!mine)
		return NULL;
	if (at_cas(&sum->copies, &copies, mine))
		return mine;
	free(mine);
	return copies;
}

/* Threads do not write to one cache line. */
static void *copy_new(const struct ktrt_reduction *reduction)
{
	size_t bytes =
		(reduction->bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	void *copy = bytes ? aligned_alloc(CACHE_LINE, bytes) : NULL;

	if (!copy)
		return NULL;
	if (reduction->neutral)
		memcpy(copy, reduction->neutral, reduction->bytes);
	else
		memset(copy, 0, reduction->bytes);
	return copy;
}

void *ktrt_reduction_copy(const struct ktrt_reduction *reduction)
{
	struct worker *w = current_worker();
	struct sum *sum = w ? find_sum(w->current, reduction) : NULL;
	void **copies = sum ? copies_of(sum) : NULL;

	if (!copies)
		return NULL;
	if (!copies[w->slot])
		copies[w->slot] = copy_new(reduction);
	return copies[w->slot];
}
