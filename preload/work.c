/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A call that was taken, done as an operation of libktask, timed and counted.
 * Knows nothing of which calls are taken, nor of the plain ones.
 */
#include <errno.h>
#include <time.h>

#include <ktask/ops.h>

#include "shim.h"

/*
 * Guards against a signal handler of the program that makes such a call while
 * its thread is already inside the library.
 */
static __thread bool busy;

bool shim_busy(void)
{
	return busy;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool operate(enum shim_call call, const char *name,
		    const struct ktask_op_args *args)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	uint64_t start_ns = now_ns();
	int saved_errno = errno;
	int error;

	opts.result = &result;
	busy = true;
	error = ktask_op_run(ktask_op_find(name), args, &opts);
	busy = false;
	shim_count(call, args->len, now_ns() - start_ns, result.threads,
		   !error);
	errno = saved_errno;
	return !error;
}

bool shim_populate(enum shim_call call, void *addr, size_t len, unsigned flags)
{
	struct ktask_op_args args = { .addr = addr,
				      .len = len,
				      .flags = flags };

	return operate(call, "populate", &args);
}

bool shim_lock(void *addr, size_t len)
{
	struct ktask_op_args args = { .addr = addr, .len = len };

	return operate(SHIM_MLOCK, "lock", &args);
}
