/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * pthread_create.  Because this call allocates, its caller holds no lock of an allocator.
 * So the shim can begin to watch what an allocator has mapped (ahead/grown_areas.h).  The
 * call itself is not changed.
 */
#include <errno.h>
#include <pthread.h>

#include <ktask/ktask.h>

#include "preload/shim.h"

static int (*next_create)(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*func)(void *), void *arg);

static void __attribute__((constructor)) find_next(void)
{
	*(void **)&next_create = shim_next_function(NEXT_PTHREAD_CREATE);
}

KTASK_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			     void *(*func)(void *), void *arg)
{
	/* A constructor before ours calls. */
	if (!next_create)
		find_next();
	if (!next_create)
		return ENOSYS;
	shim_ahead_moment();
	shim_ahead_new_thread();
	/* Its stack is mapped. */
	if (shim_prefaults)
		shim_prefault_hurry();
	return next_create(thread, attr, func, arg);
}
