/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * brk and sbrk, only to know of much memory that they add, or take away.
 *
 * Not seen: calls of the C library's own allocator, which adds little at a time.
 */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "preload/shim.h"

static void *(*next_sbrk)(intptr_t increment);
static int (*next_brk)(void *end);

static void __attribute__((constructor)) find_next(void)
{
	next_sbrk = (void *(*)(intptr_t))shim_next_function(NEXT_SBRK);
	next_brk = (int (*)(void *))shim_next_function(NEXT_BRK);
}

static void ensure_next(void)
{
	if (!next_sbrk)
		find_next();
}

/* The heap will end at @end instead of @before. */
static void stop_above(const char *end, const char *before)
{
	if (end < before && shim_ahead_watches())
		shim_ahead_stop(end, (size_t)(before - end), false);
}

/* It has ended at @before until now. */
static void watch_above(char *before, const char *end, const void *from)
{
	if (end > before)
		shim_ahead_mapping(before, (size_t)(end - before), from);
}

KTASK_API void *sbrk(intptr_t increment)
{
	const void *from = __builtin_return_address(0);
	char *before;

	ensure_next();
	if (increment < 0) {
		before = next_sbrk(0);
		stop_above(before + increment, before);
	}
	before = next_sbrk(increment);
	if (before != (void *)-1 && increment > 0)
		watch_above(before, before + increment, from);
	return before;
}

KTASK_API int brk(void *end)
{
	const void *from = __builtin_return_address(0);
	char *before;
	int error;

	ensure_next();
	before = next_sbrk(0);
	stop_above(end, before);
	error = next_brk(end);
	if (!error)
		watch_above(before, end, from);
	return error;
}
