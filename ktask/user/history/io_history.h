/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The history of I/O concurrency in this process: the number of threads that paid
 * in jobs that block (core/io_concurrency.h), for the next job of the same kind.
 *
 * A kind is a name, a minimum chunk, and the number of compensating helpers that were
 * allowed.  The name is not enough: one operation may do its work in several jobs of one
 * name, and a job with few helpers says nothing about many.
 *
 * This is not in the autotune cache (user/history/autotune.h), because the best I/O
 * concurrency depends on the device, and one operation works on many.
 */
#ifndef KTASK_USER_IO_HISTORY_H
#define KTASK_USER_IO_HISTORY_H

#include "core/io_concurrency.h"

/*
 * io_history_begin - begin a job of @least to @most threads with the known count
 * @least, @most: at least 1; at least @least
 * @name: NULL: nothing is known
 *
 * Any thread.
 */
void io_history_begin(struct kt_io *io, const char *name, uint64_t min_chunk,
		      unsigned least, unsigned most);

/* io_history_end - what the next shall know of @io, which io_history_begin() began;
 * of several at once the last counts */
void io_history_end(const struct kt_io *io, const char *name,
		    uint64_t min_chunk);

#endif /* KTASK_USER_IO_HISTORY_H */
