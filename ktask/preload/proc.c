/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reading /proc and /sys without stdio, which allocates: the program may be in
 * the middle of that.
 */
#include <fcntl.h>
#include <unistd.h>

#include "shim.h"

bool shim_read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = -1;

	if (fd >= 0) {
		len = read(fd, text, size - 1);
		close(fd);
	}
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
}

void shim_each_mapping(void (*func)(const char *line, void *arg), void *arg)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char line[128], buffer[1024];
	size_t filled = 0;
	ssize_t len;

	if (fd < 0)
		return;
	while ((len = read(fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t i = 0; i < len; i++) {
			if (filled < sizeof(line) - 1)
				line[filled++] = buffer[i];
			if (buffer[i] != '\n')
				continue;
			line[filled] = '\0';
			filled = 0;
			func(line, arg);
		}
	}
	close(fd);
}
