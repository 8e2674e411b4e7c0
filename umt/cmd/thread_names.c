/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See thread_names.h.  /proc shows, for a descriptor of a thread, the id that the thread
 * has in the namespace of that /proc.
 *
 * Behaves badly: before Linux 6.9 only the first thread of a process can have a
 * descriptor.  So if /proc belongs to another namespace, other threads have no name.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread_names.h"

/* NSpid has a number for each PID namespace from that of /proc to that of the process. */
static bool check_own_namespace(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	int first = 0, second = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status)) {
		sscanf(line, "Pid: %d", &first);
		sscanf(line, "NSpid: %*d %d", &second);
	}
	if (status)
		fclose(status);
	return first == getpid() && !second;
}

bool names_own_proc(void)
{
	static int own = -1;

	if (own < 0)
		own = check_own_namespace();
	return own;
}

/* O_EXCL: any thread, and not only the first of its process. */
static int open_thread(unsigned tid)
{
	int fd = (int)syscall(SYS_pidfd_open, tid, O_EXCL);

	return fd < 0 ? (int)syscall(SYS_pidfd_open, tid, 0) : fd;
}

/* Not above 0: none. */
static int number_there(unsigned tid)
{
	int fd = open_thread(tid), number = 0;
	char path[48], line[80];
	FILE *info;

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info) &&
	       sscanf(line, "Pid: %d", &number) != 1)
		;
	if (info)
		fclose(info);
	close(fd);
	return number;
}

void names_read(unsigned tid, char *name, size_t size)
{
	int number = names_own_proc() ? (int)tid : number_there(tid);
	char path[40];
	ssize_t nr;
	int fd;

	if (number <= 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	nr = read(fd, name, size - 1);
	close(fd);
	if (nr > 0)
		name[nr - (name[nr - 1] == '\n')] = '\0';
}
