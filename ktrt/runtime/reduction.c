/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reductions as dependences: each thread adds to its own copy of the datum.  Tasks that
 * come after the reduction find the copies combined.
 *
 * Copies belong to an epoch.  A thread's copy is made when a task asks for it.  Whoever
 * ends the epoch combines them.  If no epoch follows, the parent does, in a wait or
 * before the datum is used in another way.
 *
 * Behaves badly with large data and many threads: each has a whole copy.
 *
 * Locking: dependences.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/struct_size.h"
#include "dependences.h"

/* Read a description of any version.  The program's own one is not changed: tasks name the
 * reduction by its address. */
static int read_reduction(struct ktrt_reduction *own,
			  const struct ktrt_reduction *reduction)
{
	return struct_size_read(own, sizeof(*own), reduction,
				STRUCT_SIZE_TO(struct ktrt_reduction, combine));
}

int reduction_check(const struct ktrt_reduction *reduction)
{
	struct ktrt_reduction own;
	int error = reduction ? read_reduction(&own, reduction) : -EINVAL;

	if (error)
		return error;
	return own.bytes && own.combine ? 0 : -EINVAL;
}

void sum_combine(struct sum *sum)
{
	struct ktrt_reduction own;
	void **copies = sum->copies;
	bool valid;

	if (!copies)
		return;
	sum->copies = NULL;
	/* If the program has overwritten its size since, no field can be relied on. */
	valid = !read_reduction(&own, sum->of);
	for (unsigned i = 0; i < rt.nr_slots; i++) {
		if (copies[i] && valid)
			own.combine(own.data, copies[i], own.arg);
		free(copies[i]);
	}
	free(copies);
}

/* The reduction of the task or, because children may add too, of an ancestor. */
static struct sum *find_sum(const struct ktrt_task *task,
			    const struct ktrt_reduction *reduction)
{
	for (; task; task = task->parent)
		for (uint32_t i = 0; i < task->nr_access; i++) {
			struct epoch *epoch = access_epoch(&task->access[i]);

			if (epoch_mode(epoch) == KTRT_REDUCTION &&
			    epoch->sum.of == reduction)
				return &epoch->sum;
		}
	return NULL;
}

/* The array with a pointer for each thread, made by the first one that needs it. */
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

/* A copy shares no cache line with that of another thread. */
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
