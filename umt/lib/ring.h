/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The reading end of a BPF ring buffer.  One reader at a time; the kernel writes.
 * libbpf's own reader is not used: it needs a callback and an epoll descriptor per ring,
 * and there is a ring per core.
 */
#ifndef UMT_LIB_RING_H
#define UMT_LIB_RING_H

#include <stddef.h>

struct ring {
	int fd; /* the map; polls readable while there are records */
	size_t bytes;
	unsigned long *consumer;
	unsigned long *producer;
	char *data;
};

/* Takes over @fd on success.  @bytes: a power of two, of whole pages. */
int ring_open(struct ring *ring, int fd, size_t bytes);
void ring_close(struct ring *ring);

/* Copies the next record of @size bytes; 1, or 0 when there is none. */
int ring_next(struct ring *ring, void *record, size_t size);

/* Throws away everything that there is. */
void ring_drain(struct ring *ring);

#endif /* UMT_LIB_RING_H */
