/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Large shared mappings of memory, which a child of fork() inherits.  Servers have their
 * buffers there: the first process maps them, its children touch them.  So each child
 * watches for itself.
 *
 * Most children end, or become another program, before they touch anything.  So fork()
 * starts no thread: the child begins to watch in the first call of an allocator that comes
 * some milliseconds later.  If children end soon after that, later ones wait for longer
 * (ahead/shared_waste.h counts them), up to a second.  A child in which nothing moves
 * stops watching, and goes on in such a call after a pause, which doubles.
 *
 * Behaves badly: a child that calls no allocator is not helped.  Nor is the process that
 * made the mapping, and the children of its children only if they are made by fork().
 *
 * Locking: there is no lock.  Any thread adds and drops entries, and a signal handler may.
 */
#ifndef KT_PRELOAD_INHERITED_MAPPINGS_H
#define KT_PRELOAD_INHERITED_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ahead/shared_waste.h"

/* A mapping was made; it is or may be gone; some of its memory is given back. */
void inherited_mappings_add(uintptr_t start, uintptr_t end);
void inherited_mappings_drop(uintptr_t start, uintptr_t end);
void inherited_mappings_give_back(uintptr_t start, uintptr_t end);

/* How many there are. */
unsigned inherited_mappings_nr(void);

/* Before a fork, and in its child. */
void inherited_mappings_fork(void);
void inherited_mappings_forked(void);

/*
 * inherited_mappings_wait - does the process wait until it may watch?
 * inherited_mappings_due - by each call of an allocator meanwhile: is it time?
 * inherited_mappings_take - the same, and no longer wait
 * inherited_mappings_rest - nothing moves, or may be made now: wait again
 * @in_vain: nothing has moved since the last rest
 */
bool inherited_mappings_wait(void);
bool inherited_mappings_due(void);
bool inherited_mappings_take(void);
void inherited_mappings_rest(bool in_vain);

/* Call @watch for each.  @begins: it is not watched yet in this process. */
void inherited_mappings_each(void (*watch)(uintptr_t start, uintptr_t end,
					   struct shared_waste *waste,
					   bool begins));

#endif /* KT_PRELOAD_INHERITED_MAPPINGS_H */
