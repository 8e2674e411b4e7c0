/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Guarded: memory that processes share, with room on both sides of it that
 * nobody may touch.
 *
 * A thread whose stack overflows by a large frame steps over the page that
 * guards it and writes to what is mapped below.  That may be anything of its
 * own process; it must not be what others believe.  The same holds for who runs
 * over the end of what is mapped before.
 */
#ifndef KTASK_LIB_GUARDED_H
#define KTASK_LIB_GUARDED_H

#include <stddef.h>

/* On each side.  The largest frames that were seen to do it had 128 KiB. */
#define GUARDED_BYTES ((size_t)128 * 1024)

/*
 * guarded_map - @bytes of @fd, shared, to be read and written
 *
 * The room costs address space, no memory; mlockall(2) counts it.
 *
 * Return: NULL where it cannot be had; who has no room for this has none for the
 * stack of a helper.
 */
void *guarded_map(int fd, size_t bytes);

/* guarded_unmap - with the room */
void guarded_unmap(void *map, size_t bytes);

#endif /* KTASK_LIB_GUARDED_H */
