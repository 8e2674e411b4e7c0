/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Share: how many helpers each of several jobs gets when they want more than there are.
 */
#ifndef KTASK_CORE_SHARE_H
#define KTASK_CORE_SHARE_H

#include "core/deps.h"

/*
 * kt_share - max-min fair share of one of several
 * @limit: helpers to be shared
 * @wanted: what each wants, @nr of them
 * @self: index of the one that asks
 * @turn: any number that all of them agree on and that changes with time
 *
 * Whoever wants less than an equal part gets all of it.  The rest is shared equally
 * between the others (water filling).  Helpers that do not divide evenly go round with
 * @turn: with 200 jobs and 3 helpers every job has a helper some of the time.
 *
 * Return: helpers for @self; over all of them at most @limit.
 */
unsigned kt_share(unsigned limit, const uint32_t *wanted, unsigned nr,
		  unsigned self, uint64_t turn);

#endif /* KTASK_CORE_SHARE_H */
