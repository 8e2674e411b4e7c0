/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counts the maps that clients were handed and still hold, also after they have
 * closed the subscriber or gone.  A descriptor or a mapping keeps a map in the
 * kernel, which charges the memory to whoever made the map: umtd.
 */
#ifndef UMT_UMTD_HELD_MAPS_H
#define UMT_UMTD_HELD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Which table of the program holds a map: for each kind and key one map. */
enum held_kind { HELD_TABLE, HELD_RING, HELD_DOORBELL };

/* held_maps_reset - the program was loaded anew: it holds no map that was handed out */
void held_maps_reset(void);

/*
 * held_maps_add - a client of @uid is to be handed map @fd, of @bytes, which the
 * program holds under @kind and @key
 *
 * Root is not counted.  Return: false without memory.
 */
bool held_maps_add(int fd, uid_t uid, size_t bytes, enum held_kind kind,
		   unsigned int key);

/* held_maps_release - the program no longer holds the map of @kind and @key */
void held_maps_release(enum held_kind kind, unsigned int key);

/* held_maps_allow - may @uid, which may hold @most, be handed @bytes more?  Doorbells are
 * counted apart, the other kinds together. */
bool held_maps_allow(uid_t uid, enum held_kind kind, size_t bytes, size_t most);

/* Memory in the kernel of a table for @nr_cores, and of a ring for @bytes. */
size_t held_table_bytes(int nr_cores);
size_t held_ring_bytes(size_t bytes);

#endif /* UMT_UMTD_HELD_MAPS_H */
