/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The links of eBPF programs to events of the kernel that a process holds.
 */
#ifndef TEST_BPF_LINKS_H
#define TEST_BPF_LINKS_H

#include "ktest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of UMT's, where all have paused: to the end of tasks. */
#define LINKS_AT_REST 1

static inline bool is_bpf_link(DIR *dir, const char *name)
{
	char target[64] = "";

	return readlinkat(dirfd(dir), name, target, sizeof(target) - 1) > 0 &&
	       (strstr(target, "bpf_link") || strstr(target, "bpf-link"));
}

/* Of a process of others: by root. */
static inline unsigned nr_bpf_links_of(pid_t pid)
{
	struct dirent *entry;
	unsigned nr = 0;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		nr += is_bpf_link(dir, entry->d_name);
	closedir(dir);
	return nr;
}

static inline unsigned nr_bpf_links(void)
{
	return nr_bpf_links_of(getpid());
}

/* The descriptor of one that this process holds; -1: there is none. */
static inline int any_bpf_link(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd = -1;

	assert_non_null(dir);
	while (fd < 0 && (entry = readdir(dir)))
		if (is_bpf_link(dir, entry->d_name))
			fd = atoi(entry->d_name);
	closedir(dir);
	return fd;
}

#endif /* TEST_BPF_LINKS_H */
