/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What ktask_limits() comes to.
 */
#ifndef KTASK_UTIL_LEAST_LIMIT_H
#define KTASK_UTIL_LEAST_LIMIT_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <ktask/ktask.h>

/* More than there are. */
#define LEAST_LIMIT_MOST 32

/* least_limit_of - the least of @limits; with @lasts, of those for which it returns true */
static inline unsigned least_limit_of(const struct ktask_limit *limits,
				      unsigned nr,
				      bool (*lasts)(const char *name))
{
	unsigned least = UINT_MAX;

	for (unsigned i = 0; i < nr && i < LEAST_LIMIT_MOST; i++)
		if (limits[i].threads < least &&
		    (!lasts || lasts(limits[i].name)))
			least = limits[i].threads;
	return least;
}

static inline unsigned least_limit_now(bool (*lasts)(const char *name))
{
	struct ktask_limit limits[LEAST_LIMIT_MOST] = { KTASK_LIMIT_INIT };
	int nr = ktask_limits(limits, LEAST_LIMIT_MOST);

	return least_limit_of(limits, (unsigned)nr, lasts);
}

/* Is it independent of what runs at this moment? */
static inline bool limit_lasts(const char *name)
{
	return strcmp(name, "priority") && strcmp(name, "others");
}

/* least_limit - threads that policy allows a job of this process, its caller included */
static inline unsigned least_limit(void)
{
	return least_limit_now(NULL);
}

/* lasting_limit - the same of limits that last */
static inline unsigned lasting_limit(void)
{
	return least_limit_now(limit_lasts);
}

#endif /* KTASK_UTIL_LEAST_LIMIT_H */
