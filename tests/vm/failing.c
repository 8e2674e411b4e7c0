/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's settings for allocations that fail.
 *
 * Knows nothing of what is tested; used by PID 1 of several kinds of guests.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "failing.h"

#define DEBUG_DIR "/sys/kernel/debug"
#define HELPERS "ktask/"

/* Return: 0 or a positive errno. */
static int write_setting(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error;

	if (fd < 0)
		return errno;
	error = write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	return error;
}

bool can_fail(void)
{
	static const char *const settings[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
	};
	char path[100];

	for (unsigned i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		snprintf(path, sizeof(path), DEBUG_DIR "/%s", settings[i][0]);
		if (write_setting(path, settings[i][1]))
			return false;
	}
	return true;
}

void set_failing(const char *name, unsigned value)
{
	char path[100], text[20];

	snprintf(text, sizeof(text), "%u", value);
	snprintf(path, sizeof(path), DEBUG_DIR "/failslab/%s", name);
	write_setting(path, text);
	snprintf(path, sizeof(path), DEBUG_DIR "/fail_page_alloc/%s", name);
	write_setting(path, text);
}

/* To say so allocates as well. */
void let_fail(const char *pid, bool fail)
{
	char path[300];

	snprintf(path, sizeof(path), "/proc/%s/make-it-fail", pid);
	while (write_setting(path, fail ? "1" : "0") == ENOMEM)
		;
}

static bool is_named(const char *pid, const char *prefix)
{
	char path[300], name[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, name, sizeof(name) - 1) < 0)
		name[0] = 0;
	close(fd);
	return !strncmp(name, prefix, strlen(prefix));
}

void let_threads_fail(const char *prefix, bool fail)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if (is_named(entry->d_name, prefix))
			let_fail(entry->d_name, fail);
	}
	if (dir)
		closedir(dir);
}

void begin_failing(unsigned percent)
{
	set_failing("task-filter", 1);
	set_failing("times", -1u);
	let_threads_fail(HELPERS, true);
	set_failing("probability", percent);
}

void end_failing(void)
{
	set_failing("probability", 0);
	let_threads_fail(HELPERS, false);
	set_failing("task-filter", 0);
}
