/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory that the program has got in ways that leave no moment to start a watcher, or
 * that nobody tells the shim of.
 *
 *  - An allocator that the program brings along calls mmap() with its lock held: a thread
 *    that began then would allocate, and wait for that lock.  If there is a watcher the
 *    mapping is watched at once; otherwise it is noted, and watched from the next call in
 *    which no such lock can be held: malloc() and its kin of an allocator in a library,
 *    behind the allocator's own work, and pthread_create().
 *  - System calls without the C library are not seen at all.  The watcher reads every
 *    now and then how large the address space is.  Once it has grown by as much as is
 *    watched, the mappings are read, and new ones are watched.  Before there is a
 *    watcher, pthread_create() asks whether the program had more memory than when it
 *    asked before.
 *
 * Behaves badly: of a mapping that is found so nobody knows whether it was made with
 * MAP_NORESERVE.  A program whose allocator is linked into it, and which makes no
 * thread, gets no watcher for what that allocator maps.
 */
#ifndef PRELOAD_GROWN_AREAS_H
#define PRELOAD_GROWN_AREAS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A large mapping was made through the shim, whatever of. */
void grown_areas_know(const void *base, size_t len);

/* An allocator made this one, and there is no watcher. */
void grown_areas_note(uintptr_t start, uintptr_t end);
/* Take one of these that is still private memory; false: there is none. */
bool grown_areas_take(uintptr_t *start, uintptr_t *end);
/* Forget them.  Return: how many bytes they were. */
size_t grown_areas_drop(void);

/*
 * grown_areas_find - mappings that are new since they were last read
 * @found: called for each, with whole pages
 *
 * Opens a file.  One thread at a time: others find nothing meanwhile.
 */
void grown_areas_find(void (*found)(uintptr_t start, uintptr_t end));

/* Of a range that was found so: whether it is still private memory. */
bool grown_areas_is_private(uintptr_t start, uintptr_t end);

/*
 * grown_areas_poll - by the watcher, often: how large is the address space?
 * @due_ns: set to when it is to be asked next; UINT64_MAX: not before
 *	grown_areas_expect(), by which the watcher says that it was told of something
 *
 * Return: whether it has grown by as much as is watched.
 */
bool grown_areas_poll(uint64_t now_ns, uint64_t *due_ns);
void grown_areas_expect(uint64_t now_ns);

/* By any thread, where there is no watcher: the program had so much more memory than
 * when this was last asked. */
bool grown_areas_had_more(void);

/* In the child of a fork. */
void grown_areas_forget(void);

#endif /* PRELOAD_GROWN_AREAS_H */
