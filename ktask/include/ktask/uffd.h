/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fill memory that is registered with userfaultfd(2), to restore a process or a
 * virtual machine while it runs.
 *
 *	struct ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;
 *
 *	fill.uffd = uffd;
 *	fill.addr = addr;
 *	fill.len = len;
 *	fill.fd = image;
 *	error = ktask_uffd_fill(&fill, NULL);
 *
 * Several threads copy the pages in order.  Between two copies each of them checks
 * whether a thread of the program waits for a page, and makes that page first.
 */
#ifndef KTASK_UFFD_H
#define KTASK_UFFD_H

#include <ktask/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* fd is a socket or a pipe: it is read in order, and a page can be made only after its
 * bytes have arrived. */
#define KTASK_UFFD_STREAM 0x1u

/**
 * ktask_uffd_source_func - provide bytes [offset, offset + len) of the source
 * @buf: fill all of it
 * @offset: counted from fill.offset
 * @arg: source_arg
 *
 * Context: the caller and helpers call it, several at once, under no lock.  A page for
 * which a thread waits is requested out of order, and may be requested twice.  The
 * function may call the library.  A C++ exception that it does not catch ends the
 * program.
 *
 * Return: 0; any other value ends ktask_uffd_fill(), which returns that value.
 */
typedef int (*ktask_uffd_source_func)(void *buf, size_t len, uint64_t offset,
				      void *arg);

/** struct ktask_uffd_ctl - what is filled, and from where; only read */
struct ktask_uffd_ctl {
	size_t struct_size;
	void *addr; /* in the process whose memory it is; whole pages */
	size_t len; /* bytes; zeroes follow in the last page */
	/* Opened with O_NONBLOCK.  Only this range is registered with it, for missing
	 * pages.  Nobody else reads it during the call. */
	int uffd;

	/* The source: one of them. */
	int fd; /* -1: source_func */
	ktask_uffd_source_func source_func;
	void *source_arg;

	/* optional                              default */
	uint64_t
		offset; /*                      0: where the first byte is in fd */
	unsigned flags; /*                       0; KTASK_UFFD_STREAM */
	/* The most that all threads together use on average for pages for which nobody
	 * waits, in per cent of one CPU.        0: no limit */
	unsigned cpu_percent;
	/* If a stream delivers nothing for so long, the call fails with -ETIMEDOUT.
	 *                                       0: never */
	unsigned stall_ms;
	unsigned padding; /*                     must be 0, as what follows */
	uint64_t reserved[4];
};

#define KTASK_UFFD_CTL_INIT                                               \
	{                                                                 \
		.struct_size = sizeof(struct ktask_uffd_ctl), .uffd = -1, \
		.fd = -1                                                  \
	}

/**
 * ktask_uffd_fill - make every page of a range, first those for which threads wait
 * @opts: NULL for defaults; as for ktask_op_run()
 *
 * Pages that are present already stay as they are.  Returns when all are present.  From
 * then on no thread can wait for one of them.
 *
 * After an error the pages that were made stay, and threads may still wait for others.
 * Call again, or let these threads go on by UFFDIO_UNREGISTER, UFFDIO_ZEROPAGE or
 * UFFDIO_POISON.
 *
 * Hugetlb pages are not supported.  Nor are events of forks and of moved or removed
 * memory (UFFD_FEATURE_EVENT_*): they would change what has to be copied.
 *
 * Context: sleeps; may be called inside a chunk.  Pages are made under the caller's
 * memory policy.
 *
 * Return: 0; what @fill->source_func returned; -EINVAL, -E2BIG: arguments, nothing was
 * done; -ENODATA: the file or the stream ends before the range; -ESRCH: the process has
 * gone; -ENOENT: not mapped or not registered any more; -ERANGE: somebody waits for a
 * page outside of the range; -EOPNOTSUPP: an event; -EAGAIN: memory moves and does not
 * stop; as read(2); -ENOMEM; -ETIMEDOUT; -ECANCELED.  fail_offset of the result is the
 * first byte that could not be made.
 */
KTASK_API int ktask_uffd_fill(const struct ktask_uffd_ctl *fill,
			      const struct ktask_opts *opts);

#ifdef __cplusplus
}
#endif

#endif /* KTASK_UFFD_H */
