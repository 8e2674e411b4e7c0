/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See ring.h.  The kernel defines the layout (kernel/bpf/ringbuf.c): a page with the
 * reader's position, one with the writer's, then the data.  The data are mapped twice in
 * a row, so that every record is contiguous.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring.h"

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int ring_open(struct ring *ring, int fd, size_t bytes)
{
	size_t page = page_bytes();
	void *consumer, *producer;
	int error;

	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (consumer == MAP_FAILED)
		return -errno;
	producer = mmap(NULL, page + 2 * bytes, PROT_READ, MAP_SHARED, fd,
			(off_t)page);
	if (producer == MAP_FAILED) {
		error = -errno;
		munmap(consumer, page);
		return error;
	}
	ring->fd = fd;
	ring->bytes = bytes;
	ring->producer = producer;
	ring->data = (char *)producer + page;
	/* Last, because a reader that sees it takes the ring to be open. */
	__atomic_store_n(&ring->consumer, consumer, __ATOMIC_RELEASE);
	return 0;
}

void ring_close(struct ring *ring)
{
	size_t page = page_bytes();

	if (!ring->consumer)
		return;
	munmap(ring->consumer, page);
	munmap(ring->producer, page + 2 * ring->bytes);
	close(ring->fd);
	memset(ring, 0, sizeof(*ring));
}

static bool is_open(const struct ring *ring)
{
	return __atomic_load_n(&ring->consumer, __ATOMIC_ACQUIRE);
}

static size_t step_bytes(uint32_t length)
{
	return (BPF_RINGBUF_HDR_SZ + (size_t)length + 7) & ~(size_t)7;
}

/* Stops at a record that is reserved but not yet submitted, so order is kept. */
int ring_next(struct ring *ring, void *record, size_t size)
{
	unsigned long at, end;

	if (!is_open(ring))
		return 0;
	at = __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);
	end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	while (at < end) {
		char *header = ring->data + (at & (ring->bytes - 1));
		uint32_t word =
			__atomic_load_n((uint32_t *)header, __ATOMIC_ACQUIRE);
		uint32_t length = word & ~BPF_RINGBUF_DISCARD_BIT;
		bool wanted = word == size;

		if (word & BPF_RINGBUF_BUSY_BIT)
			return 0;
		if (wanted)
			memcpy(record, header + BPF_RINGBUF_HDR_SZ, size);
		/* The kernel may write there from now on. */
		at += step_bytes(length);
		__atomic_store_n(ring->consumer, at, __ATOMIC_SEQ_CST);
		if (wanted)
			return 1;
	}
	return 0;
}

void ring_drain(struct ring *ring)
{
	unsigned long end;

	if (!is_open(ring))
		return;
	end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	__atomic_store_n(ring->consumer, end, __ATOMIC_SEQ_CST);
}
