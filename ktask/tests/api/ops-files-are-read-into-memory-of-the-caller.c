/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory for direct reads of files is mapped by the caller of a job and not by its helpers:
 * the program would wait for a helper of the lowest priority that holds the lock of the
 * process's mappings.
 *
 * Stands before syscall(), to see who maps by it.
 */
#include "ktest.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pages.h"
#include "syscalls.h"

#ifdef SYS_mmap2
#define MAP_CALL SYS_mmap2
#else
#define MAP_CALL SYS_mmap
#endif
#define LEN (16 * MIB)
#define NR_JOBS 50

static pid_t caller;
static unsigned nr_own, nr_foreign;

static bool count_maps(long number, const long args[6], long *result)
{
	if (number != MAP_CALL)
		return false;
	if (gettid() == caller)
		nr_own++;
	else
		__atomic_add_fetch(&nr_foreign, 1, __ATOMIC_RELAXED);
	return false;
}

static int make_file(void)
{
	char name[] = "/var/tmp/ktask-direct.XXXXXX", block[4096] = "x";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	unlink(name);
	for (size_t at = 0; at < LEN; at += sizeof(block))
		assert_int_equal(write(fd, block, sizeof(block)),
				 sizeof(block));
	fsync(fd);
	return fd;
}

static void helpers_map_nothing(void **state)
{
	int fd;

#ifdef __SANITIZE_THREAD__
	ktest_skip("the library maps by mmap(), for the sanitizer");
#endif
	fd = make_file();
	caller = gettid();
	syscalls_answer = count_maps;
	for (int i = 0; i < NR_JOBS; i++)
		assert_int_equal(ktask_warm(fd, 0, LEN, KTASK_FILE_DIRECT), 0);
	syscalls_answer = NULL;
	close(fd);
	assert_true(nr_own >= NR_JOBS);
	assert_int_equal(nr_foreign, 0);
}

KTEST_MAIN(KTEST(helpers_map_nothing))
