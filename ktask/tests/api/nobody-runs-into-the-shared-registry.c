/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * On both sides of what all processes share there is guard that nobody can use:
 * a stack that overflows next to it ends its own process.  Where there is no
 * address space for that, or it may not be locked, jobs do without the registry.
 */
#include "ktest.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <ktask/ktask.h>

#include "user/limits/guarded.h"
#include "user/limits/permits.h"
#include "user/limits/registry.h"

#define USER 65529
#define KIB 1024ul
/* No frame of ours is that large. */
#define FRAME_BYTES (64 * KIB)
#define UNITS 100000

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Is there a mapping at @pos already? */
static bool is_taken(char *pos)
{
	void *map =
		mmap(pos, page_bytes(), PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (map != MAP_FAILED)
		munmap(map, page_bytes());
	return map != pos;
}

/* The kernel looks for us. */
static bool is_readable(const char *pos)
{
	int ends[2];
	bool readable;

	ktest_check(!pipe(ends));
	readable = write(ends[1], pos, 1) == 1;
	ktest_check(readable || errno == EFAULT);
	close(ends[0]);
	close(ends[1]);
	return readable;
}

static bool is_resident(char *pos)
{
	unsigned char there = 0;

	ktest_check(!mincore(pos, page_bytes(), &there));
	return there & 1;
}

static bool is_guard(char *pos)
{
	return is_taken(pos) && !is_readable(pos) && !is_resident(pos);
}

/* Return: true if that much before and behind it is guard. */
static bool is_guarded(char *map, size_t bytes)
{
	char *end =
		map + (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
	bool guarded = true;

	ktest_check(is_taken(map) && is_readable(map));
	ktest_check(is_taken(end - page_bytes()) &&
		    is_readable(end - page_bytes()));
	for (size_t pos = 0; pos < FRAME_BYTES; pos += page_bytes())
		guarded &= is_guard(end + pos) &&
			   is_guard(map - page_bytes() - pos);
	return guarded;
}

static int check_registry(void *arg)
{
	struct registry *registry = registry_open();

	if (!registry)
		return 77;
	return !is_guarded((char *)registry, sizeof(*registry));
}

static int check_locked_registry(void *arg)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return 77;
	return check_registry(arg);
}

static void nothing_is_next_to_it(void **state)
{
	int status = ktest_in_child(check_registry, NULL);

	if (status == 77 << 8)
		ktest_skip("no shared registry here");
	assert_int_equal(status, 0);
}

static void what_is_locked_takes_no_memory(void **state)
{
	int status;

	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("sanitizers map more than can be locked");
	status = ktest_in_child(check_locked_registry, NULL);
	if (status == 77 << 8)
		ktest_skip(
			"no shared registry here, or memory may not be locked");
	assert_int_equal(status, 0);
}

static int map_and_unmap(void *arg)
{
	size_t bytes = 5 * page_bytes() + 5;
	int fd = memfd_create("guarded", MFD_CLOEXEC);
	char *map;

	ktest_check(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	map = guarded_map(fd, bytes);
	ktest_check(map && is_guarded(map, bytes));
	guarded_unmap(map, bytes);
	for (char *pos = map - GUARDED_BYTES;
	     pos < map + 6 * page_bytes() + GUARDED_BYTES; pos += page_bytes())
		ktest_check(!is_taken(pos));
	return 0;
}

static void the_guard_goes_with_it(void **state)
{
	assert_int_equal(ktest_in_child(map_and_unmap, NULL), 0);
}

/* What the kernel may leave of a mapping that replaces another and fails. */
static char *hole;
static bool hole_is_filled;

void *mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	if (flags & MAP_FIXED && fd == -2) {
		hole = addr;
		munmap(hole, bytes);
		if (hole_is_filled)
			ktest_check(mmap(hole, page_bytes(), PROT_READ,
					 MAP_PRIVATE | MAP_ANONYMOUS |
						 MAP_FIXED_NOREPLACE,
					 -1, 0) == hole);
		fd = -1;
	}
	return (void *)syscall(SYS_mmap, addr, bytes, prot, flags, fd, offset);
}

static int fail_to_come(void *arg)
{
	size_t bytes = 5 * page_bytes() + 5;

	for (int filled = 0; filled < 2; filled++) {
		hole_is_filled = filled;
		ktest_check(!guarded_map(-2, bytes));
		ktest_check(is_taken(hole) == hole_is_filled);
		ktest_check(!is_taken(hole - page_bytes()));
		ktest_check(!is_taken(hole + 6 * page_bytes()));
	}
	return 0;
}

/* Another thread may have mapped memory of its own where the guard was. */
static void one_that_fails_takes_nothing_of_others(void **state)
{
	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("sanitizers have a function of that name");
	assert_int_equal(ktest_in_child(fail_to_come, NULL), 0);
}

/* ---- where there is none ---- */

static int count_chunk(void *start, void *end, void *arg)
{
	__atomic_add_fetch((size_t *)arg, (size_t)((char *)end - (char *)start),
			   __ATOMIC_RELAXED);
	return 0;
}

static int work_without_registry(void)
{
	size_t units = 0;
	DEFINE_KTASK_CTL(ctl, count_chunk, &units, 1);

	ktest_check(!ktask_run(NULL, UNITS, &ctl));
	ktest_check(units == UNITS);
	ktest_check(!permits_shared());
	return 0;
}

static void limit_to(int resource, rlim_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	ktest_check(!setrlimit(resource, &limit));
}

/* The registry would fit, what is around it not. */
static int work_in_little_space(void *arg)
{
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "re");

	ktest_check(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	limit_to(RLIMIT_AS, pages * page_bytes() + 200 * KIB);
	return work_without_registry();
}

static int work_with_little_to_lock(void *arg)
{
	if (!geteuid()) {
		ktest_check(!setresgid(USER, USER, USER));
		ktest_check(!setresuid(USER, USER, USER));
	}
	limit_to(RLIMIT_MEMLOCK, 200 * KIB);
	if (mlockall(MCL_FUTURE))
		return 77;
	return work_without_registry();
}

static void jobs_do_without_it(void **state)
{
	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("sanitizers need address space of their own");
	assert_int_equal(ktest_in_child(work_in_little_space, NULL), 0);
}

static void jobs_do_without_it_where_it_would_be_locked(void **state)
{
	int status;

	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("sanitizers map more than can be locked");
	status = ktest_in_child(work_with_little_to_lock, NULL);
	if (status == 77 << 8)
		ktest_skip("memory may not be locked");
	assert_int_equal(status, 0);
}

KTEST_MAIN(KTEST(nothing_is_next_to_it), KTEST(what_is_locked_takes_no_memory),
	   KTEST(the_guard_goes_with_it),
	   KTEST(one_that_fails_takes_nothing_of_others),
	   KTEST(jobs_do_without_it),
	   KTEST(jobs_do_without_it_where_it_would_be_locked))
