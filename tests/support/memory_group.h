/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A child in a memory cgroup of version 1 whose OOM killer is off; in version 2 it
 * cannot be switched off.
 */
#ifndef TESTS_MEMORY_GROUP_H
#define TESTS_MEMORY_GROUP_H

#include "ktest.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the child returns where memory_group_enter() has failed. */
#define NO_MEMORY_GROUP 70

static char memory_group[128];

static inline bool memory_group_put(const char *name, const char *value)
{
	char path[256];
	ssize_t len = (ssize_t)strlen(value);
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", memory_group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, value, (size_t)len) == len;
	close(fd);
	return done;
}

/* In the child: from here on it has @bytes, a decimal number. */
static inline bool memory_group_enter(const char *bytes)
{
	return memory_group_put("memory.limit_in_bytes", bytes) &&
	       memory_group_put("memory.oom_control", "1") &&
	       memory_group_put("cgroup.procs", "0");
}

/* Makes the group, does @test in a child, and removes the group. */
static inline void memory_group_test(int (*test)(void *arg), void *arg)
{
	int status;

	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("a sanitizer needs memory of its own");
	snprintf(memory_group, sizeof(memory_group),
		 "/sys/fs/cgroup/memory/ktask-test-%d", (int)getpid());
	if (mkdir(memory_group, 0755))
		ktest_skip("no memory cgroup of version 1 may be made");
	status = ktest_in_child(test, arg);
	rmdir(memory_group);
	if (status == NO_MEMORY_GROUP << 8)
		ktest_skip("the memory cgroup cannot be limited");
	assert_int_equal(status, 0);
}

#endif /* TESTS_MEMORY_GROUP_H */
