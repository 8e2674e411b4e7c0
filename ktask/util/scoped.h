/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declarations that take effect until the end of a block, however it is left.
 *
 * Not for ops/, which is compiled for exceptions: there it would need libgcc_s, which
 * the shim does not load into a program.
 */
#ifndef KTASK_UTIL_SCOPED_H
#define KTASK_UTIL_SCOPED_H

#include <errno.h>
#include <pthread.h>

static inline void restore_errno(const int *kept)
{
	errno = *kept;
}

static inline int disable_cancellation(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void restore_cancellation(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

/* keep_errno - errno will be what it is now */
#define keep_errno() \
	int kept_errno __attribute__((cleanup(restore_errno), unused)) = errno

/* block_cancellation - the calling thread cannot be cancelled */
#define block_cancellation()                                             \
	int cancel_state                                                 \
		__attribute__((cleanup(restore_cancellation), unused)) = \
			disable_cancellation()

#endif /* KTASK_UTIL_SCOPED_H */
