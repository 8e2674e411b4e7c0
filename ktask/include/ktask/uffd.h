/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Filling memory that is registered with userfaultfd(2): for those who restore a
 * process or a machine while it runs.
 *
 *	struct ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;
 *
 *	fill.uffd = uffd;
 *	fill.addr = addr;
 *	fill.len = len;
 *	fill.fd = image;
 *	error = ktask_uffd_fill(&fill, NULL);
 *
 * Several threads copy what the program has not asked for yet.  Between two copies
 * each of them looks for pages that a thread waits for, and makes those first.
 */
#ifndef KTASK_UFFD_H
#define KTASK_UFFD_H

#include <ktask/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* fd is read in order (a socket, a pipe): a page can be made when it has come. */
#define KTASK_UFFD_STREAM 0x1u

/**
 * ktask_uffd_source_func - bytes [offset, offset + len) of the source
 * @buf: to be filled whole
 * @offset: counted from fill.offset
 * @arg: source_arg
 *
 * Context: the caller and helpers, several at once; under no lock.  A page that is
 * waited for is asked for in between, and may be asked for twice.  It may call the
 * library.  A C++ exception that it does not catch ends the program.
 *
 * Return: 0; any other value ends the call, and is what it returns.
 */
typedef int (*ktask_uffd_source_func)(void *buf, size_t len, uint64_t offset,
				      void *arg);

/** struct ktask_uffd_ctl - what is filled, and from where; only read */
struct ktask_uffd_ctl {
	size_t struct_size;
	void *addr; /* in the process whose memory it is; whole pages */
	size_t len; /* bytes; zeroes follow in the last page */
	/* Opened with O_NONBLOCK; nothing else than this range is registered with
	 * it, for missing pages, and nobody else reads it meanwhile. */
	int uffd;

	/* The source: one of them. */
	int fd; /* -1: source_func */
	ktask_uffd_source_func source_func;
	void *source_arg;

	/* optional                              default */
	uint64_t
		offset; /*                      0: of the first byte in the file */
	unsigned flags; /*                       0; KTASK_UFFD_STREAM */
	/* Per cent of one CPU that all threads together use for pages that nobody
	 * waits for, on average.                0: as much as there is */
	unsigned cpu_percent;
	/* A stream that gives nothing for so long ends the call with -ETIMEDOUT.
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
 * ktask_uffd_fill - make every page of a range, those first that are waited for
 * @opts: NULL for defaults; as of ktask_op_run()
 *
 * Pages that are there already stay as they are.  Returns when all are there: no
 * thread can wait for one of them any more.
 *
 * After an error the pages that were made stay, and threads may wait for others: call
 * again, or let them go on with UFFDIO_UNREGISTER, UFFDIO_ZEROPAGE or UFFDIO_POISON.
 *
 * Not for hugetlb pages, and not beside events of forks, moved or removed memory
 * (UFFD_FEATURE_EVENT_*), which would have to change what is copied.
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
