/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Allocations of chosen threads that fail, in kernels that were built for it
 * (CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC).
 */
#ifndef KTASK_GUEST_FAILING_H
#define KTASK_GUEST_FAILING_H

#include <stdbool.h>

/* can_fail - whether any can, those too that may not wait and those of user memory */
bool can_fail(void);

/* set_failing - of objects and of pages: a setting of both, by its name */
void set_failing(const char *name, unsigned value);

/* let_fail - allocations of a process and the threads it makes from now on, or of a
 * kernel thread, as far as others are not let fail (task-filter) */
void let_fail(const char *pid, bool fail);

/* let_threads_fail - of all whose name begins so */
void let_threads_fail(const char *prefix, bool fail);

/* begin_failing - as many percent of the allocations of ktask's kernel threads, and of
 * processes that let themselves fail; end_failing - none any more */
void begin_failing(unsigned percent);
void end_failing(void);

#endif /* KTASK_GUEST_FAILING_H */
