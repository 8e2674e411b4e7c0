/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An io_uring of one entry, by system calls, that reads files into fixed buffers.
 * Needs ktest.h before it.
 */
#ifndef TEST_URING_H
#define TEST_URING_H

#include <errno.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct uring {
	int fd;
	char *rings;
	size_t rings_bytes;
	struct io_uring_sqe *sqe;
	struct io_uring_params params;
};

/* uring_open - with @slots empty slots; false where there is none to be had */
static inline bool uring_open(struct uring *ring, unsigned slots)
{
	struct io_uring_rsrc_register table = {
		.nr = slots,
		.flags = IORING_RSRC_REGISTER_SPARSE,
	};
	struct io_uring_params *params = &ring->params;

	memset(ring, 0, sizeof(*ring));
	ring->fd = (int)syscall(SYS_io_uring_setup, 1, params);
	if (ring->fd < 0)
		return false;
	if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS2,
		    &table, sizeof(table)) ||
	    !(params->features & IORING_FEAT_SINGLE_MMAP)) {
		close(ring->fd);
		return false;
	}
	ring->rings_bytes = params->cq_off.cqes +
			    params->cq_entries * sizeof(struct io_uring_cqe);
	ring->rings =
		mmap(NULL, ring->rings_bytes, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQ_RING);
	ring->sqe = mmap(NULL, sizeof(*ring->sqe), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQES);
	return ring->rings != MAP_FAILED && ring->sqe != MAP_FAILED;
}

static inline void uring_close(struct uring *ring)
{
	munmap(ring->rings, ring->rings_bytes);
	munmap(ring->sqe, sizeof(*ring->sqe));
	close(ring->fd);
}

static inline unsigned *uring_word(struct uring *ring, unsigned offset)
{
	return (unsigned *)(ring->rings + offset);
}

/* uring_read - @len bytes of @fd into @at, which is in fixed buffer @slot
 *
 * Return: bytes that were read, or -errno: -EFAULT where it is not there.
 */
static inline int uring_read(struct uring *ring, int fd, char *at, unsigned len,
			     unsigned slot)
{
	unsigned *tail = uring_word(ring, ring->params.sq_off.tail);
	unsigned *head = uring_word(ring, ring->params.cq_off.head);
	struct io_uring_cqe *cqe;
	int result;

	memset(ring->sqe, 0, sizeof(*ring->sqe));
	ring->sqe->opcode = IORING_OP_READ_FIXED;
	ring->sqe->fd = fd;
	ring->sqe->addr = (uintptr_t)at;
	ring->sqe->len = len;
	ring->sqe->buf_index = (unsigned short)slot;
	*uring_word(ring, ring->params.sq_off.array) = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS,
		    NULL, 0) != 1)
		return -errno;
	cqe = (struct io_uring_cqe *)(ring->rings + ring->params.cq_off.cqes) +
	      (*head & (ring->params.cq_entries - 1));
	result = cqe->res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

#endif /* TEST_URING_H */
