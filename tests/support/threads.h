/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the other threads of this process are at.
 *
 * A thread that begins holds locks of the address sanitizer's allocator for a
 * moment, and a child forked in that moment has them held for ever (gcc 12).  Who
 * forks beside threads that were just made lets them begin first.  The same holds for
 * threads that end.
 */
#ifndef TEST_THREADS_H
#define TEST_THREADS_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "ktest.h"

#define THREADS_SECONDS 30

/* threads_all_sleep - does every thread but this one sleep? */
static inline bool threads_all_sleep(void)
{
	char path[64], line[256], *state;
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	bool all = tasks;

	while (all && (entry = readdir(tasks))) {
		int fd;
		ssize_t len;

		if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat",
			 entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = read(fd, line, sizeof(line) - 1);
		close(fd);
		line[len > 0 ? len : 0] = 0;
		/* A thread that has just gone does not begin either. */
		state = strrchr(line, ')');
		all = !state || state[2] == 'S';
	}
	if (tasks)
		closedir(tasks);
	return all;
}

/* threads_all_named - has every thread that name, but this one and the first?  A thread
 * that has not begun has the name of who made it. */
static inline bool threads_all_named(const char *name)
{
	char path[64], found[32];
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	bool all = tasks;

	while (all && (entry = readdir(tasks))) {
		int fd;
		ssize_t len;

		if (entry->d_name[0] == '.' ||
		    atoi(entry->d_name) == gettid() ||
		    atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm",
			 entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = read(fd, found, sizeof(found) - 1);
		close(fd);
		found[len > 0 ? len : 0] = 0;
		all = len > 0 && !strncmp(found, name, strlen(name));
	}
	if (tasks)
		closedir(tasks);
	return all;
}

/* threads_let_begin - wait until they do, not for ever */
static inline void threads_let_begin(void)
{
	uint64_t end_ns = ktest_now_ns() + THREADS_SECONDS * 1000000000ull;

	while (!threads_all_sleep() && ktest_now_ns() < end_ns)
		usleep(1000);
}

#endif /* TEST_THREADS_H */
