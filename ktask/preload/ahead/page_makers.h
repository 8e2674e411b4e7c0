/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers that are in a piece of a mapping.  They are SCHED_IDLE.  If a thread of the
 * program waits for the end of a piece, it lends them its priority: on a busy machine they
 * would not get a CPU otherwise.
 *
 * Behaves badly: a helper that was raised stays so until it finds no work for a moment.
 * A process that may not raise threads does not; but its helpers are not lowered either.
 */
#ifndef PRELOAD_PAGE_MAKERS_H
#define PRELOAD_PAGE_MAKERS_H

/* Around a piece, by the helper. */
void page_makers_join(void);
void page_makers_leave(void);

/* By a thread that waits for the end of pieces, at each poll. */
void page_makers_raise(void);

/* In the child of a fork. */
void page_makers_forget(void);

#endif /* PRELOAD_PAGE_MAKERS_H */
