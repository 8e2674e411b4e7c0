/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Guarded: memory that processes share, with guards on both sides that nobody may touch.
 *
 * A thread whose stack overflows by a large frame steps over its guard page and writes to
 * the mapping below.  That mapping must not be memory on which other processes rely.  The
 * same holds for a write beyond the end of the mapping before this one.
 */
#ifndef KTASK_USER_GUARDED_H
#define KTASK_USER_GUARDED_H

#include <stddef.h>

/* On each side.  The largest frames that were seen to do it had 128 KiB. */
#define GUARDED_BYTES ((size_t)128 * 1024)

/*
 * guarded_map - @bytes of @fd, shared, to be read and written
 *
 * The guards cost address space but no memory; mlockall(2) counts them.
 *
 * Return: NULL if there is no memory or address space.  Then there is none for the stack
 * of a helper either.
 */
void *guarded_map(int fd, size_t bytes);

/* guarded_unmap - with the guards */
void guarded_unmap(void *map, size_t bytes);

#endif /* KTASK_USER_GUARDED_H */
