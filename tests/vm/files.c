/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Files of the kernel, and waiting: for PID 1 and for programs that it runs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;
	int error;

	if (fd < 0)
		return errno;
	n = write(fd, text, strlen(text));
	error = n < 0 ? errno : 0;
	close(fd);
	return error;
}

void read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	while (fd >= 0 && len < size - 1 &&
	       (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	if (fd >= 0)
		close(fd);
}

void sleep_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}
