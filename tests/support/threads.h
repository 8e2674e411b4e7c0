/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the other threads of this process are at, and binding them all.
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
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "ktest.h"

#define THREADS_SECONDS 30

/* What the kernel says in @file of thread @tid; empty of one that has gone. */
static inline void read_of_thread(const char *tid, const char *file, char *text,
				  size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/%s", tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = read(fd, text, size - 1);
	close(fd);
	text[len > 0 ? len : 0] = 0;
}

/* Does @holds hold of @file of every thread but this one and @but? */
static inline bool threads_all(const char *file, pid_t but,
			       bool (*holds)(const char *text, const char *arg),
			       const char *arg)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	bool all = tasks;
	char text[256];

	while (all && (entry = readdir(tasks))) {
		pid_t tid = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || tid == gettid() || tid == but)
			continue;
		read_of_thread(entry->d_name, file, text, sizeof(text));
		all = holds(text, arg);
	}
	if (tasks)
		closedir(tasks);
	return all;
}

static inline bool is_asleep(const char *stat, const char *unused)
{
	const char *state = strrchr(stat, ')');

	(void)unused;
	/* A thread that has just gone does not begin either. */
	return !state || state[2] == 'S';
}

static inline bool begins_with(const char *text, const char *name)
{
	return *text && !strncmp(text, name, strlen(name));
}

/* threads_all_sleep - does every thread but this one sleep? */
static inline bool threads_all_sleep(void)
{
	return threads_all("stat", 0, is_asleep, NULL);
}

/* threads_all_named - has every thread that name, but this one and the first?  A thread
 * that has not begun has the name of who made it. */
static inline bool threads_all_named(const char *name)
{
	return threads_all("comm", getpid(), begins_with, name);
}

/* threads_let_begin - wait until they do, not for ever */
static inline void threads_let_begin(void)
{
	uint64_t end_ns = ktest_now_ns() + THREADS_SECONDS * 1000000000ull;

	while (!threads_all_sleep() && ktest_now_ns() < end_ns)
		usleep(1000);
}

/* threads_bind - each thread to @cpus, as `taskset -a` does */
static inline void threads_bind(const cpu_set_t *cpus)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	while (tasks && (entry = readdir(tasks)))
		if (atoi(entry->d_name))
			sched_setaffinity(atoi(entry->d_name), sizeof(*cpus),
					  cpus);
	if (tasks)
		closedir(tasks);
}

#endif /* TEST_THREADS_H */
