/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Opening what should be a file and may be anything by now.
 */
#ifndef KTASK_CLI_OPEN_H
#define KTASK_CLI_OPEN_H

#include <errno.h>
#include <fcntl.h>

/* open_now - of a FIFO without waiting for its other end; but for who has a
 * lease.  Return: as open(2). */
static inline int open_now(const char *path, int flags)
{
	int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno == EWOULDBLOCK)
		fd = open(path, flags | O_NOCTTY | O_CLOEXEC);
	return fd;
}

#endif /* KTASK_CLI_OPEN_H */
