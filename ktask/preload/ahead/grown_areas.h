/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory that the program maps when no watcher can be started, or without the shim.
 *
 *  - The program's own allocator calls mmap() with its lock held.  Starting a thread at
 *    that moment would allocate, and wait for that lock.  If there is a watcher, the
 *    mapping is watched at once.  Otherwise it is noted, and watched from the next call
 *    in which no such lock can be held.  That is pthread_create(), or malloc() and its kin
 *    of an allocator in a library, after the allocator has returned.
 *  - The shim does not see system calls without the C library.  So the watcher reads the
 *    size of the address space now and then.  Once that has grown by the size of a large
 *    mapping, it reads the mappings and watches new ones.  Before there is a watcher,
 *    pthread_create() checks whether the program has got that much memory since the last
 *    check.
 *
 * Behaves badly: for a mapping that is found in this way, it is not known whether it has
 * MAP_NORESERVE.  A program whose allocator is linked into it, and that makes no thread,
 * gets no watcher for what that allocator maps.
 */
#ifndef PRELOAD_GROWN_AREAS_H
#define PRELOAD_GROWN_AREAS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A large mapping of any kind was made through the shim. */
void grown_areas_know(const void *base, size_t len);

/* An allocator made this mapping, and there is no watcher yet. */
void grown_areas_note(uintptr_t start, uintptr_t end);
/* Is any noted? */
bool grown_areas_noted(void);
/* Take a noted mapping that is still private memory; false: there is none. */
bool grown_areas_take(uintptr_t *start, uintptr_t *end);
/* Forget the noted mappings.  Return: their bytes. */
size_t grown_areas_drop(void);

/*
 * grown_areas_find - find mappings that are new since they were last read
 * @found: called for each, with whole pages
 *
 * Opens a file.  One thread at a time; if two call at once the second finds nothing.
 */
void grown_areas_find(void (*found)(uintptr_t start, uintptr_t end));

/* Is a range that was found still private memory? */
bool grown_areas_is_private(uintptr_t start, uintptr_t end);

/*
 * grown_areas_poll - check the size of the address space; often, by the watcher
 * @due_ns: set to when to call this next; UINT64_MAX: not before the watcher has called
 *	grown_areas_expect(), because it was told of something
 *
 * Return: whether the address space has grown by the size of a large mapping.
 */
bool grown_areas_poll(uint64_t now_ns, uint64_t *due_ns);
void grown_areas_expect(uint64_t now_ns);

/* By any thread while there is no watcher: has the program got the size of a large mapping
 * more than at the last call? */
bool grown_areas_had_more(void);

/* In the child of a fork. */
void grown_areas_forget(void);

#endif /* PRELOAD_GROWN_AREAS_H */
