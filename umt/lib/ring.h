/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The reading end of a BPF ring buffer.  One reader at a time; the kernel writes.
 * libbpf's own reader is not used: it needs a callback and an epoll descriptor per ring,
 * and there is a ring per core.
 *
 * Locking: there is no lock here.
 *
 *	O: written by open and close, under subscriber_lock(), and before ->consumer is
 *	   set with release order; other threads read ->consumer first, with acquire
 *	A: the positions: the reader's is written here, the writer's by the kernel;
 *	   by atomic operations
 *
 * ring_drain() may be called by several threads, ring_next() by one at a time.
 */
#ifndef UMT_LIB_RING_H
#define UMT_LIB_RING_H

#include <stddef.h>

struct ring {
	int fd; /* the map; polls readable while there are records; O */
	size_t bytes; /* O */
	unsigned long *consumer; /* NULL: not open; O, A */
	unsigned long *producer; /* O, A */
	char *data; /* O; records the kernel's until they are read */
};

/* Takes over @fd on success.  @bytes: a power of two, of whole pages. */
int ring_open(struct ring *ring, int fd, size_t bytes);
void ring_close(struct ring *ring);

/* Copies the next record of @size bytes; 1, or 0 when there is none. */
int ring_next(struct ring *ring, void *record, size_t size);

/* Discards all records. */
void ring_drain(struct ring *ring);

#endif /* UMT_LIB_RING_H */
