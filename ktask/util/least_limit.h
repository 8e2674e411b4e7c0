/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What ktask_limits() comes to.
 */
#ifndef KTASK_UTIL_LEAST_LIMIT_H
#define KTASK_UTIL_LEAST_LIMIT_H

#include <limits.h>
#include <string.h>

#include <ktask/ktask.h>

/* More than there are. */
#define LEAST_LIMIT_MOST 32

static inline unsigned least_limit_of(const struct ktask_limit *limits,
				      unsigned nr)
{
	unsigned least = UINT_MAX;

	for (unsigned i = 0; i < nr && i < LEAST_LIMIT_MOST; i++)
		if (limits[i].threads < least)
			least = limits[i].threads;
	return least;
}

/* least_limit - threads that policy allows a job of this process, its caller included */
static inline unsigned least_limit(void)
{
	struct ktask_limit limits[LEAST_LIMIT_MOST] = { KTASK_LIMIT_INIT };
	int nr = ktask_limits(limits, LEAST_LIMIT_MOST);

	return least_limit_of(limits, (unsigned)nr);
}

/* lasting_limit - the same without what depends on who runs at this moment */
static inline unsigned lasting_limit(void)
{
	struct ktask_limit limits[LEAST_LIMIT_MOST] = { KTASK_LIMIT_INIT };
	int nr = ktask_limits(limits, LEAST_LIMIT_MOST);
	unsigned least = UINT_MAX;

	for (int i = 0; i < nr && i < LEAST_LIMIT_MOST; i++)
		if (limits[i].threads < least &&
		    strcmp(limits[i].name, "priority") &&
		    strcmp(limits[i].name, "others"))
			least = limits[i].threads;
	return least;
}

#endif /* KTASK_UTIL_LEAST_LIMIT_H */
