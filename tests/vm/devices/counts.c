/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is registered now: see counts.h.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counts.h"

/* So long a kernel may take to give something back, where it does that later. */
#define PATIENCE_MS 60000
#define POLL_MS 20

static int told[2];

/* The number behind @name in a file of lines, -1 for none. */
static long number_in(const char *path, const char *name)
{
	FILE *in = fopen(path, "r");
	char line[256];
	long number = -1;

	while (in && number < 0 && fgets(line, sizeof(line), in))
		if (!strncmp(line, name, strlen(name)))
			number = strtol(line + strlen(name), NULL, 10);
	if (in)
		fclose(in);
	return number;
}

long counts_pinned(void)
{
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY);

	/* Counters of the CPUs are added up. */
	assert_true(fd >= 0 && write(fd, "1", 1) == 1);
	close(fd);
	return number_in("/proc/vmstat", "nr_foll_pin_acquired ") -
	       number_in("/proc/vmstat", "nr_foll_pin_released ");
}

long counts_of_status(pid_t pid, const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/status", pid ? pid : getpid());
	return number_in(path, name);
}

size_t counts_present(const char *at, size_t len)
{
	unsigned char *there = malloc(len / PAGE);
	size_t nr = 0;

	assert_non_null(there);
	assert_int_equal(mincore((void *)at, len, there), 0);
	for (size_t i = 0; i < len / PAGE; i++)
		nr += there[i] & 1;
	free(there);
	return nr;
}

uint64_t counts_frame(const char *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	assert_true(fd >= 0);
	if (pread(fd, &entry, sizeof(entry),
		  (off_t)((uintptr_t)at / PAGE * sizeof(entry))) !=
	    sizeof(entry))
		entry = 0;
	close(fd);
	return entry & (((uint64_t)1 << 55) - 1);
}

bool counts_return_to(long (*count)(void), long wanted)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += POLL_MS) {
		if (count() == wanted)
			return true;
		usleep(POLL_MS * 1000);
	}
	return false;
}

char *map_absent(size_t len)
{
	char *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ktest_check(at != MAP_FAILED);
	madvise(at, len, MADV_NOHUGEPAGE);
	return at;
}

bool limit_locking(size_t bytes)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2];
	struct rlimit limit = { bytes, bytes };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) ||
	    syscall(SYS_capget, &head, data))
		return false;
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	data[0].permitted &= ~(1u << CAP_IPC_LOCK);
	return !syscall(SYS_capset, &head, data);
}

void tell_parent(void)
{
	if (write(told[1], "", 1) != 1)
		_exit(2);
}

pid_t hold_in_child(void (*hold)(void *arg), void *arg)
{
	char byte;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(told[0]);
		hold(arg);
		_exit(3);
	}
	close(told[1]);
	/* If it ends before, there is nothing to read. */
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	return pid;
}

void kill_child(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
