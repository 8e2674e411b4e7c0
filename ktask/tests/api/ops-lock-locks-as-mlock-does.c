/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * lock: afterwards memory, locks and error are what mlock(2) would have left,
 * and what the limit forbids touches nothing.
 */
#include "ktest.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include "pages.h"
#include "syscalls.h"

#define LEN (32 * MIB)
#define SMALL (16 * page_bytes())
#define CAP_IPC_LOCK_BIT (1u << 14)

/* Sanitizers make the functions of these names do nothing. */
static int plain_lock(void *at, size_t len)
{
	return syscall(SYS_mlock, at, len) ? -errno : 0;
}

static bool may_lock(void)
{
	struct rlimit limit;
	char *at = map_private(LEN);
	bool may = !getrlimit(RLIMIT_MEMLOCK, &limit) && !plain_lock(at, LEN);

	munmap(at, LEN);
	return may;
}

#define need_lock()                                             \
	do {                                                    \
		if (!may_lock())                                \
			ktest_skip("locking is not permitted"); \
	} while (0)

static void everything_is_locked_and_present(void **state)
{
	size_t lens[] = { LEN, SMALL, page_bytes() };

	need_lock();
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(lens); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		size_t before = status_bytes("VmLck");
		char *at = map_private(LEN);

		assert_int_equal(run_op("lock", at, lens[i], 0, &result), 0);
		assert_int_equal(status_bytes("VmLck") - before, lens[i]);
		assert_int_equal(pages_present(at, LEN),
				 lens[i] / page_bytes());
		assert_int_equal(result.units, lens[i]);
		assert_int_equal(result.error, 0);
		assert_true(result.wall_ns > 0);
		munmap(at, LEN);
	}
}

static void a_second_lock_changes_nothing(void **state)
{
	char *at = map_private(LEN);

	need_lock();
	assert_int_equal(ktask_lock(at, LEN, 0), 0);
	assert_int_equal(ktask_lock(at + 4 * MIB, 8 * MIB, 0), 0);
	assert_int_equal(ktask_lock(at, LEN, KTASK_POPULATE_READ), 0);
	assert_int_equal(status_bytes("VmLck"), LEN);
	munmap(at, LEN);
}

/* Copies are made of private pages; shared ones are not dirtied. */
static void faults_are_those_of_mlock(void **state)
{
	int fd = memory_file(LEN);
	char *copy =
		mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	char *constant = map_anon(LEN, PROT_READ, MAP_PRIVATE);

	need_lock();
	assert_int_equal(ktask_lock(copy, LEN, 0), 0);
	assert_int_equal(pwrite(fd, "late", 4, 7 * MIB), 4);
	assert_memory_equal(copy + 7 * MIB, "\0\0\0\0", 4);
	assert_int_equal(ktask_lock(constant, LEN, 0), 0);
	munmap(copy, LEN);
	munmap(constant, LEN);
	close(fd);
}

/* Counted by Private_Dirty and Shared_Dirty of one mapping. */
static size_t dirty_bytes(const char *at)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long start, end, kib, dirty = 0;
	bool here = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start == (uintptr_t)at;
		else if (here && strstr(line, "_Dirty:") &&
			 sscanf(line, "%*s %lu", &kib) == 1)
			dirty += kib;
	}
	if (file)
		fclose(file);
	return dirty * 1024;
}

static void shared_files_stay_clean(void **state)
{
	char path[] = "/tmp/ktask-lock-XXXXXX";
	int fd = mkstemp(path);
	char *at;

	need_lock();
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, LEN), 0);
	at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(ktask_lock(at, LEN, 0), 0);
	assert_int_equal(pages_present(at, LEN), LEN / page_bytes());
	assert_int_equal(dirty_bytes(at), 0);
	munmap(at, LEN);
	close(fd);
}

/* What mlock() says of the same mess, and where it is. */
static void same_error(void (*spoil)(char *at), size_t where)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *plain = map_private(LEN), *ours = map_private(LEN);
	int error;

	spoil(plain);
	spoil(ours);
	error = plain_lock(plain, LEN);
	assert_int_not_equal(error, 0);
	assert_int_equal(run_op("lock", ours, LEN, 0, &result), error);
	assert_int_equal(result.error, error);
	assert_int_equal(result.fail_offset, where);
	munmap(plain, LEN);
	munmap(ours, LEN);
}

static void make_hole(char *at)
{
	munmap(at + 9 * MIB, page_bytes());
}

static void forbid_access(char *at)
{
	mprotect(at + 11 * MIB, page_bytes(), PROT_NONE);
}

static void cut_file(char *at)
{
	int fd = memory_file(5 * MIB);

	assert_ptr_not_equal(mmap(at, LEN, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, fd, 0),
			     MAP_FAILED);
	close(fd);
}

static void errors_are_those_of_mlock(void **state)
{
	need_lock();
	same_error(make_hole, 9 * MIB);
	same_error(forbid_access, 11 * MIB);
	same_error(cut_file, 5 * MIB);
}

static void small_ranges_say_where_too(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at = map_private(SMALL);

	need_lock();
	munmap(at + 3 * page_bytes(), page_bytes());
	assert_int_equal(run_op("lock", at, SMALL, 0, &result), -ENOMEM);
	assert_int_equal(result.fail_offset, 3 * page_bytes());
	munmap(at, SMALL);
}

struct kernel_cap {
	unsigned version;
	int pid;
};

struct kernel_cap_set {
	unsigned effective;
	unsigned permitted;
	unsigned inheritable;
};

static bool drop_the_right(void)
{
	struct kernel_cap head = { 0x20080522, 0 };
	struct kernel_cap_set sets[2];

	if (syscall(SYS_capget, &head, sets))
		return false;
	sets[0].effective &= ~CAP_IPC_LOCK_BIT;
	return !syscall(SYS_capset, &head, sets);
}

/* With a limit, without the right: the plain error, and nothing touched. */
static int beyond_the_limit(void *arg)
{
	size_t allowed = *(size_t *)arg;
	struct rlimit limit = { allowed, allowed };
	size_t lens[] = { LEN, allowed + page_bytes() };

	ktest_check(drop_the_right());
	ktest_check(!setrlimit(RLIMIT_MEMLOCK, &limit));
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(lens); i++) {
		char *at = map_private(LEN);
		int error = plain_lock(at, lens[i]);

		ktest_check(error == (allowed ? -ENOMEM : -EPERM));
		ktest_check(ktask_lock(at, lens[i], 0) == error);
		ktest_check(pages_present(at, LEN) == 0);
		ktest_check(status_bytes("VmLck") == 0);
		munmap(at, LEN);
	}
	if (allowed) {
		char *at = map_private(LEN);

		ktest_check(ktask_lock(at, allowed, 0) == 0);
		ktest_check(status_bytes("VmLck") == allowed);
		/* What is locked already is not counted twice. */
		ktest_check(ktask_lock(at, allowed, 0) == 0);
		ktest_check(ktask_lock(at + allowed, page_bytes(), 0) ==
			    -ENOMEM);
		ktest_check(pages_present(at + allowed, page_bytes()) == 0);
	}
	return 0;
}

static void limits_are_found_out_first(void **state)
{
	size_t limits[] = { 0, 64 * 1024, 8 * MIB };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(limits); i++)
		assert_int_equal(ktest_in_child(beyond_the_limit, &limits[i]),
				 0);
}

static int stop_at_once(const struct ktask_progress *progress, void *arg)
{
	return 1;
}

static void cancelled_it_leaves_the_locks_as_they_were(void **state)
{
	char *at = map_private(LEN);
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = at,
				      .len = LEN };
	struct ktask_opts opts = KTASK_OPTS_INIT;

	need_lock();
	opts.progress_func = stop_at_once;
	opts.progress_ms = 1;
	opts.max_threads = 1;
	assert_int_equal(ktask_op_run(ktask_op_find("lock"), &args, &opts),
			 -ECANCELED);
	assert_int_equal(status_bytes("VmLck"), 0);

	assert_int_equal(plain_lock(at + 6 * MIB, 2 * MIB), 0);
	assert_int_equal(ktask_op_run(ktask_op_find("lock"), &args, &opts),
			 -ECANCELED);
	assert_int_equal(status_bytes("VmLck"), 2 * MIB);
	munmap(at, LEN);
}

/* So long that the caller has looked up by the end of it. */
static bool linger_in_call(long number, const long args[6], long *result)
{
	if (number != SYS_mlock && number != SYS_mlock2 &&
	    number != SYS_madvise)
		return false;
	*result = syscalls_pass(number, args);
	if (*result < 0)
		*result = -errno;
	usleep(5000);
	return true;
}

static void small_ranges_are_unlocked_too(void **state)
{
	char *at = map_private(LEN);
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = at,
				      .len = 16 * page_bytes() };
	struct ktask_opts opts = KTASK_OPTS_INIT;

	need_lock();
	opts.progress_func = stop_at_once;
	opts.progress_ms = 1;
	syscalls_answer = linger_in_call;
	assert_int_equal(ktask_op_run(ktask_op_find("lock"), &args, &opts),
			 -ECANCELED);
	syscalls_answer = NULL;
	assert_int_equal(status_bytes("VmLck"), 0);
	munmap(at, LEN);
}

/* First those in children: TSAN allows no threads after a fork of many. */
KTEST_MAIN(KTEST(limits_are_found_out_first),
	   KTEST(everything_is_locked_and_present),
	   KTEST(a_second_lock_changes_nothing),
	   KTEST(faults_are_those_of_mlock), KTEST(shared_files_stay_clean),
	   KTEST(errors_are_those_of_mlock), KTEST(small_ranges_say_where_too),
	   KTEST(cancelled_it_leaves_the_locks_as_they_were),
	   KTEST(small_ranges_are_unlocked_too))
