/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory for direct reads of files is mapped by the caller of a job and not by its helpers:
 * the program would wait for a helper of the lowest priority that holds the lock of the
 * process's mappings.
 *
 * Stands before mmap(), to see who calls it.
 */
#include "ktest.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pages.h"

#define LEN (16 * MIB)
#define NR_JOBS 50

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	!defined(__LP64__)

static void helpers_map_nothing(void **state)
{
	ktest_skip("a sanitizer maps memory, or mmap2() is called");
}

#else

static pid_t caller;
static unsigned nr_own, nr_foreign;

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (!caller || gettid() == caller)
		nr_own++;
	else
		__atomic_add_fetch(&nr_foreign, 1, __ATOMIC_RELAXED);
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
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
	int fd = make_file();

	caller = gettid();
	for (int i = 0; i < NR_JOBS; i++)
		assert_int_equal(ktask_warm(fd, 0, LEN, KTASK_FILE_DIRECT), 0);
	close(fd);
	assert_true(nr_own >= NR_JOBS);
	assert_int_equal(nr_foreign, 0);
}

#endif

KTEST_MAIN(KTEST(helpers_map_nothing))
