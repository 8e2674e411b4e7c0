/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes the pages of a range present ahead of a thread that goes through it in ascending
 * order: helpers populate a window while the thread works on the window before.
 *
 * A window that is present according to samples is skipped.  Device memory has no pages to
 * make.  That is no error here: the next use of the memory decides.
 *
 * If a device takes the lock of the process's mappings for writing, its call would wait
 * for each chunk that populates, and the next chunk for the call.  While such a device is
 * called (presence_yield_lock()), helpers touch pages instead, which takes a fifth longer.
 *
 * Locking: none.  The thread sets the atomic yields while pages shall be touched.  Helpers
 * read it before each step, so a call waits for one step at most.
 *
 * Behaves badly on kernels without MADV_POPULATE_WRITE (before 5.14): there all threads
 * make a window when it is reached, not ahead.
 */
#ifndef OPS_PRESENCE_H
#define OPS_PRESENCE_H

#include "op.h"

/* On the stack of the thread; must stay where it is. */
struct presence {
	uintptr_t end;
	uintptr_t ready; /* what lies below is present, or cannot be made so */
	uintptr_t next; /* end of the window that is made now; ready: none is */
	uintptr_t base; /* windows end at multiples of unit_bytes from here */
	size_t unit_bytes;
	size_t sampled_bytes;
	size_t align; /* of all windows; 0: not known, or of each its own */
	size_t step_bytes; /* of the same */
	unsigned flags; /* KTASK_POPULATE_READ or 0 */
	const struct ktask_opts *opts; /* of the caller */
	struct op_watch *watch;
	struct ktask_job *started; /* populates [ready, next); NULL: nothing */
	struct op_job job; /* what is started */
	struct ktask_result result; /* of that */
	struct ktask_result sum; /* of all windows */
	bool judged; /* no more is populated */
	bool may_yield; /* presence_may_yield() */
	bool may_touch; /* fault_get() was called */
	unsigned fault_token;
	_Atomic bool yields; /* touch pages now; written by the thread */
};

/**
 * presence_begin - prepare; presence_reach() begins the first window
 * @range: addr, len, opts, watch; the flags of ops.h
 */
void presence_begin(struct presence *presence, const struct op_job *range,
		    uintptr_t base, size_t unit_bytes);

/**
 * presence_reach - wait until all before @pos is ready, and begin the next window
 * @fail_pos: on failure the first byte that could not be made; 0: none failed
 *
 * Return: 0; -ENOMEM, -EHWPOISON; -ETIMEDOUT, -ECANCELED as the options say.
 */
int presence_reach(struct presence *presence, uintptr_t pos,
		   uintptr_t *fail_pos);

/**
 * presence_may_yield - after presence_begin(): there will be calls of
 * presence_yield_lock()
 */
void presence_may_yield(struct presence *presence);

/** presence_yield_lock - from now on pages are made without the lock of mappings, or
 * with it again */
void presence_yield_lock(struct presence *presence, bool yields);

/** presence_end - wait for what was begun; it makes no more pages */
void presence_end(struct presence *presence);

/** presence_make - populate [start, end), unless it looks present, by this thread,
 * inside its chunk
 *
 * Return: 0; -ENOMEM, -EHWPOISON, with @fail_pos set.
 */
int presence_make(uintptr_t start, uintptr_t end, unsigned flags,
		  uintptr_t *fail_pos);

#endif /* OPS_PRESENCE_H */
