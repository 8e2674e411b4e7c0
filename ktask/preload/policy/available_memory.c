/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How much memory may still be used: what the machine has available, and what
 * the control groups, of either version, that this process is in leave it.
 *
 * Files that cannot be read count as no limit, except the machine's own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/shim.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

static size_t machine_bytes(void)
{
	char text[1024];
	const char *at;

	if (!shim_read_text("/proc/meminfo", text, sizeof(text)))
		return 0;
	at = strstr(text, "MemAvailable:");
	return at ? strtoull(at + 13, NULL, 10) * 1024 : 0;
}

/* The files of one version of control groups. */
struct version {
	const char *key; /* in /proc/self/cgroup, before the directory */
	const char *root, *most, *used;
};

static const struct version versions[] = {
	{ "\n0::", CGROUP_ROOT, "memory.max", "memory.current" },
	{ ":memory:", CGROUP_ROOT "/memory", "memory.limit_in_bytes",
	  "memory.usage_in_bytes" },
};

/* "max", which is no number, reads as no limit. */
static bool read_number(const struct version *version, const char *directory,
			const char *name, size_t *value)
{
	char path[640], text[64], *end;

	snprintf(path, sizeof(path), "%s%s/%s", version->root, directory, name);
	if (!shim_read_text(path, text, sizeof(text)))
		return false;
	*value = strtoull(text, &end, 10);
	return end != text;
}

static size_t directory_bytes(const struct version *version,
			      const char *directory)
{
	size_t most, used;

	if (!read_number(version, directory, version->most, &most) ||
	    !read_number(version, directory, version->used, &used))
		return SIZE_MAX;
	return most > used ? most - used : 0;
}

/* The least of a directory and those above it, down to the root's. */
static size_t tree_bytes(const struct version *version, const char *text)
{
	const char *at = strstr(text, version->key);
	size_t least = SIZE_MAX;
	char directory[512];

	if (!at)
		return least;
	at += strlen(version->key);
	snprintf(directory, sizeof(directory), "%.*s", (int)strcspn(at, "\n"),
		 at);
	for (char *end = directory + strlen(directory); end;
	     end = strrchr(directory, '/')) {
		size_t available;

		*end = '\0';
		available = directory_bytes(version, directory);
		least = available < least ? available : least;
	}
	return least;
}

size_t shim_available_bytes(void)
{
	char text[2048] = "\n";
	size_t least = machine_bytes();

	if (!shim_read_text("/proc/self/cgroup", text + 1, sizeof(text) - 1))
		return least;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		size_t available = tree_bytes(&versions[i], text);

		least = available < least ? available : least;
	}
	return least;
}
