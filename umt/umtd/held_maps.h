/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What clients hold of what they were handed, also after they have closed it or
 * gone: descriptors, mappings and whatever else keeps a map keep its memory in
 * the kernel, at the expense of who has made it, which is umtd.
 */
#ifndef UMT_UMTD_HELD_MAPS_H
#define UMT_UMTD_HELD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where the program itself holds a map: one place, one map. */
enum held_kind { HELD_TABLE, HELD_RING, HELD_DOORBELL };

/* held_maps_reset - the program was loaded: it holds nothing of what was handed out */
void held_maps_reset(void);

/*
 * held_maps_add - a client of @uid is to be handed map @fd, of @bytes, which the
 * program has taken into place @key of a kind; false without memory.  Root is
 * not counted.
 */
bool held_maps_add(int fd, uid_t uid, size_t bytes, enum held_kind kind,
		   unsigned int key);

/* held_maps_release - the program holds nothing there any more */
void held_maps_release(enum held_kind kind, unsigned int key);

/* held_maps_allow - may @uid be handed @bytes, if it may hold @most?  Of doorbells, or of
 * the other kinds together. */
bool held_maps_allow(uid_t uid, enum held_kind kind, size_t bytes, size_t most);

/* What a table of so many cores, and a ring for so much, take in the kernel. */
size_t held_table_bytes(int nr_cores);
size_t held_ring_bytes(size_t bytes);

#endif /* UMT_UMTD_HELD_MAPS_H */
