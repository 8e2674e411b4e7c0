/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The links of eBPF programs to events of the kernel that this process holds.
 */
#ifndef TEST_BPF_LINKS_H
#define TEST_BPF_LINKS_H

#include "ktest.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

static inline unsigned nr_bpf_links(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned nr = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char target[64] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target,
			       sizeof(target) - 1) > 0)
			nr += !!strstr(target, "bpf_link") ||
			      !!strstr(target, "bpf-link");
	}
	closedir(dir);
	return nr;
}

#endif /* TEST_BPF_LINKS_H */
