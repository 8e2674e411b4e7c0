/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How much memory may still be used: what the machine has available, and what
 * the control groups (v2) that this process is in leave it.
 *
 * Files that cannot be read count as no limit, except the machine's own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

static bool read_text(const char *path, char *text, size_t size)
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

static size_t machine_bytes(void)
{
	char text[1024];
	const char *at;

	if (!read_text("/proc/meminfo", text, sizeof(text)))
		return 0;
	at = strstr(text, "MemAvailable:");
	return at ? strtoull(at + 13, NULL, 10) * 1024 : 0;
}

/* "max", which is no number, reads as no limit. */
static bool read_number(const char *folder, const char *name, size_t *value)
{
	char path[640], text[64], *end;

	snprintf(path, sizeof(path), CGROUP_ROOT "%s/%s", folder, name);
	if (!read_text(path, text, sizeof(text)))
		return false;
	*value = strtoull(text, &end, 10);
	return end != text;
}

static size_t folder_bytes(const char *folder)
{
	size_t most, used;

	if (!read_number(folder, "memory.max", &most) ||
	    !read_number(folder, "memory.current", &used))
		return SIZE_MAX;
	return most > used ? most - used : 0;
}

size_t shim_room_bytes(void)
{
	char text[600], *folder, *end;
	size_t least = machine_bytes();

	if (!read_text("/proc/self/cgroup", text, sizeof(text)))
		return least;
	folder = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!folder)
		return least;
	folder = strchr(folder, '/');
	end = folder ? strchr(folder, '\n') : NULL;
	for (; end && end > folder; end = strrchr(folder, '/')) {
		size_t room;

		*end = '\0';
		room = folder_bytes(folder);
		least = room < least ? room : least;
	}
	return least;
}
