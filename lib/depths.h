/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Depths: what this process knows of how many threads jobs that block should
 * have in their chunks (core/depth.h), by name, least chunk and how many workers
 * were allowed: an operation may do its work by several jobs of one name, and one
 * that was allowed few says nothing of what more would bring.
 *
 * Not kept in the file of learnt counts (lib/learn.h): the best depth is that
 * of a device, and one operation meets many.
 */
#ifndef KTASK_LIB_DEPTHS_H
#define KTASK_LIB_DEPTHS_H

#include "core/depth.h"

/*
 * depths_begin - a job of @least to @most threads goes on with what is known
 * @least, @most: at least 1; at least @least
 * @name: NULL: nothing is
 *
 * Any thread.
 */
void depths_begin(struct kt_depth *depth, const char *name, uint64_t min_chunk,
		  unsigned least, unsigned most);

/* depths_end - what the next shall know of @depth, which depths_begin() began;
 * of several at once the last counts */
void depths_end(const struct kt_depth *depth, const char *name,
		uint64_t min_chunk);

#endif /* KTASK_LIB_DEPTHS_H */
