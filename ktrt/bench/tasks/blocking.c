/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What tasks block in: "block" a sleep; "block-read" a direct read; "block-fault"
 * pages of a mapped file that is not in memory; "block-mixed" these by turns.  The
 * file is that of BENCH_TASKS_FILE.  go/ and rust/ have the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/tasks/cases.h"
#include "bench/tasks/parts.h"

#define READ_BYTES 65536
#define PAGE_BYTES 4096

enum { SLEEPS, READS, FAULTS, NR_KINDS };

static const char *const names[] = { "block", "block-read", "block-fault",
				     "block-mixed" };
/* NR_KINDS: each task another. */
static unsigned kind;
static int direct_fd = -1, cached_fd = -1;
static const volatile char *mapped;
static size_t nr_parts;
/* Tasks that began, and those that blocked well. */
static unsigned nr_begun, nr_blocked;

static int open_file(const char *path, int flags)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | flags) : -1;

	if (fd < 0) {
		fprintf(stderr, "BENCH_TASKS_FILE %s: %s\n", path ? path : "",
			path ? strerror(errno) : "not set");
		exit(2);
	}
	return fd;
}

static void map_file(void)
{
	const char *path = getenv("BENCH_TASKS_FILE");
	struct stat status;
	void *at;

	direct_fd = open_file(path, O_DIRECT);
	cached_fd = open_file(path, 0);
	if (fstat(cached_fd, &status) || status.st_size < READ_BYTES)
		exit(2);
	nr_parts = (size_t)status.st_size / READ_BYTES;
	at = mmap(NULL, nr_parts * READ_BYTES, PROT_READ, MAP_SHARED, cached_fd,
		  0);
	/* One page at a time: what is wanted next is not known. */
	if (at == MAP_FAILED || madvise(at, nr_parts * READ_BYTES, MADV_RANDOM))
		exit(2);
	mapped = at;
}

bool blocking_choose(const char *name)
{
	for (unsigned i = 0; i <= NR_KINDS; i++)
		if (!strcmp(name, names[i])) {
			kind = i;
			if (kind != SLEEPS)
				map_file();
			return true;
		}
	return false;
}

void blocking_reset(void)
{
	nr_begun = nr_blocked = 0;
	if (!mapped)
		return;
	/* A page that is mapped would stay. */
	madvise((void *)mapped, nr_parts * READ_BYTES, MADV_DONTNEED);
	posix_fadvise(cached_fd, 0, 0, POSIX_FADV_DONTNEED);
}

bool blocking_is_right(int nr)
{
	return __atomic_load_n(&nr_blocked, __ATOMIC_RELAXED) == (unsigned)nr;
}

static bool sleep_once(void)
{
	struct timespec pause = { 0, 1000000 };

	return !nanosleep(&pause, NULL);
}

static bool read_part(size_t part)
{
	char buffer[READ_BYTES + PAGE_BYTES];
	char *aligned = (char *)(((uintptr_t)buffer + PAGE_BYTES - 1) &
				 ~(uintptr_t)(PAGE_BYTES - 1));

	return pread(direct_fd, aligned, READ_BYTES,
		     (off_t)(part * READ_BYTES)) == READ_BYTES;
}

static bool touch_part(size_t part)
{
	for (size_t i = 0; i < READ_BYTES; i += PAGE_BYTES)
		(void)mapped[part * READ_BYTES + i];
	return true;
}

static bool block_once(unsigned how, size_t part)
{
	return how == SLEEPS  ? sleep_once()
	       : how == READS ? read_part(part)
			      : touch_part(part);
}

void task_block(void)
{
	unsigned nr = __atomic_fetch_add(&nr_begun, 1, __ATOMIC_RELAXED);

	if (block_once(kind < NR_KINDS ? kind : nr % NR_KINDS,
		       nr_parts ? nr % nr_parts : 0))
		__atomic_fetch_add(&nr_blocked, 1, __ATOMIC_RELAXED);
	task_work(100000);
}
