/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Verifying targets: see target.h.  A directory may become read-only, or a disk full,
 * after that.  So errors must still be checked when the file is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target.h"

/* Create another file in the same directory: a file of the name itself could be
 * opened by another process, which would lose what it writes when we remove it. */
static int try_to_create(const char *path)
{
	const char *slash = strrchr(path, '/');
	int fd, error = 0, len = slash ? (int)(slash + 1 - path) : 0;
	char *other;

	if (!path[len])
		return -EISDIR;
	if (asprintf(&other, "%.*s.ktask-XXXXXX", len, path) < 0)
		return -ENOMEM;
	fd = mkostemp(other, O_CLOEXEC);
	if (fd < 0) {
		error = -errno;
	} else {
		unlink(other);
		close(fd);
	}
	free(other);
	return error;
}

static int try_to_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int target_verify(const char *path)
{
	struct stat found;

	if (lstat(path, &found))
		return errno == ENOENT ? try_to_create(path) : -errno;
	/* A link that leads nowhere: its file is made, as it will be anyway. */
	if (stat(path, &found) || S_ISREG(found.st_mode))
		return try_to_open(path);
	if (S_ISDIR(found.st_mode))
		return -EISDIR;
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) ? -errno : 0;
}
