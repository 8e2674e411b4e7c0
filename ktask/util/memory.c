/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See memory.h.  A file that cannot be read counts as no limit.
 */
#include <stdio.h>
#include <string.h>

#include "file.h"
#include "memory.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

/* A limit of one version of control groups.  Above memory.high the kernel makes the
 * processes of the group wait. */
struct version {
	const char *key; /* in /proc/self/cgroup, before the directory */
	const char *root, *most, *used;
};

static const struct version group_versions[] = {
	{ "\n0::", CGROUP_ROOT, "memory.max", "memory.current" },
	{ "\n0::", CGROUP_ROOT, "memory.high", "memory.current" },
	{ ":memory:", CGROUP_ROOT "/memory", "memory.limit_in_bytes",
	  "memory.usage_in_bytes" },
};

#define NR_VERSIONS (sizeof(group_versions) / sizeof(group_versions[0]))

static uint64_t machine_bytes(void)
{
	uint64_t kib;

	return file_value("/proc/meminfo", "MemAvailable", &kib) ? kib << 10
								 : UINT64_MAX;
}

/* "max", which is no number, reads as no limit. */
static bool read_number(const struct version *version, const char *directory,
			const char *name, uint64_t *value)
{
	char path[640];

	snprintf(path, sizeof(path), "%s%s/%s", version->root, directory, name);
	return file_number(path, value);
}

static uint64_t directory_bytes(const struct version *version,
				const char *directory)
{
	uint64_t most, used;

	if (!read_number(version, directory, version->most, &most))
		return UINT64_MAX;
	if (!read_number(version, directory, version->used, &used))
		used = 0;
	return most > used ? most - used : 0;
}

/* The least of a directory and those above it, down to the root's. */
static uint64_t tree_bytes(const struct version *version, const char *text)
{
	const char *at = strstr(text, version->key);
	uint64_t least = UINT64_MAX;
	char directory[512];

	if (!at)
		return least;
	at += strlen(version->key);
	snprintf(directory, sizeof(directory), "%.*s", (int)strcspn(at, "\n"),
		 at);
	for (char *end = directory + strlen(directory); end;
	     end = strrchr(directory, '/')) {
		uint64_t available;

		*end = '\0';
		available = directory_bytes(version, directory);
		least = available < least ? available : least;
	}
	return least;
}

uint64_t memory_available_to(const char *groups)
{
	char text[2048] = "\n";
	uint64_t least = machine_bytes();

	file_text(groups, text + 1, sizeof(text) - 1);
	for (size_t i = 0; i < NR_VERSIONS; i++) {
		uint64_t available = tree_bytes(&group_versions[i], text);

		least = available < least ? available : least;
	}
	return least;
}

uint64_t memory_available(void)
{
	return memory_available_to("/proc/self/cgroup");
}
