/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask_unmap() unmaps the whole range and nothing beside it; where munmap(2)
 * is refused, everything is still there, with its contents.
 */
#include "ktest.h"

#include <sys/syscall.h>

#include "pages.h"
#include "syscalls.h"

#define LEN (96 * MIB)
#define SKIRT (2 * MIB)

#ifndef SYS_mseal
#define SYS_mseal 462
#endif

/* All pages present, none like the other; a skirt on both sides. */
static char *map_skirted(size_t len)
{
	char *at = map_private(len + 2 * SKIRT);

	for (size_t i = 0; i < len + 2 * SKIRT; i += page_bytes())
		*(size_t *)(at + i) = i + 1;
	/* So that helpers are made now: their stacks could come to lie where
	 * something was just unmapped. */
	assert_int_equal(ktask_populate(at, len + 2 * SKIRT, 0), 0);
	return at + SKIRT;
}

static bool is_intact(const char *at, size_t from, size_t to)
{
	for (size_t i = from; i < to; i += page_bytes())
		if (*(const size_t *)(at - SKIRT + i) != i + 1)
			return false;
	return true;
}

static bool is_mapped(char *at)
{
	unsigned char there;

	return !mincore(at, page_bytes(), &there);
}

static bool skirts_intact(const char *at)
{
	return is_intact(at, 0, SKIRT) &&
	       is_intact(at, SKIRT + LEN, SKIRT + LEN + SKIRT);
}

static void unmap_skirted(char *at)
{
	munmap(at - SKIRT, LEN + 2 * SKIRT);
}

static void the_middle_of_a_mapping_goes(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at = map_skirted(LEN);

	assert_int_equal(run_op("unmap", at, LEN, 0, &result), 0);
	assert_int_equal(result.error, 0);
	assert_int_equal(result.units, LEN);
	for (size_t i = 0; i < LEN; i += page_bytes())
		assert_false(is_mapped(at + i));
	assert_true(skirts_intact(at));
	unmap_skirted(at);
}

static void unaligned_edges_are_kept_to(void **state)
{
	size_t skew = 5 * page_bytes();
	char *at = map_skirted(LEN);

	assert_int_equal(ktask_unmap(at + skew, LEN - 2 * skew - 1), 0);
	assert_true(is_mapped(at + skew - page_bytes()));
	assert_false(is_mapped(at + skew));
	assert_false(is_mapped(at + LEN - skew - page_bytes()));
	assert_true(is_mapped(at + LEN - skew));
	assert_true(skirts_intact(at));
	unmap_skirted(at);
}

static void holes_and_many_mappings_are_unmapped(void **state)
{
	char *at = map_skirted(LEN);

	munmap(at + 10 * MIB, MIB);
	mprotect(at + 20 * MIB, MIB, PROT_READ);
	assert_int_equal(ktask_unmap(at, LEN), 0);
	assert_false(is_mapped(at));
	assert_false(is_mapped(at + 20 * MIB));
	assert_false(is_mapped(at + LEN - page_bytes()));
	assert_int_equal(ktask_unmap(at, LEN), 0);
	assert_true(skirts_intact(at));
	unmap_skirted(at);
}

static void locked_memory_goes(void **state)
{
	char *at = map_skirted(LEN);
	size_t locked = status_bytes("VmLck");

	if (ktask_lock(at, LEN, 0))
		ktest_skip("locking %zu bytes is not permitted", LEN);
	assert_int_equal(ktask_unmap(at, LEN), 0);
	assert_false(is_mapped(at));
	assert_int_equal(status_bytes("VmLck"), locked);
	unmap_skirted(at);
}

static void dirty_file_pages_keep_their_contents(void **state)
{
	int fd = memory_file(LEN);
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t word;

	assert_ptr_not_equal(at, MAP_FAILED);
	for (size_t i = 0; i < LEN; i += page_bytes())
		*(uint64_t *)(at + i) = i + 1;
	assert_int_equal(ktask_unmap(at, LEN), 0);
	assert_false(is_mapped(at));
	for (size_t i = 0; i < LEN; i += page_bytes()) {
		assert_int_equal(pread(fd, &word, 8, (off_t)i), 8);
		assert_int_equal(word, i + 1);
	}
	close(fd);
}

static int stop_job(const struct ktask_progress *progress, void *arg)
{
	return 1;
}

static void cancelling_does_not_leave_half(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_op_args args = { .struct_size = sizeof(args), .len = LEN };

	args.addr = map_skirted(LEN);
	opts.progress_func = stop_job;
	opts.progress_ms = 1;
	assert_int_equal(ktask_op_run(ktask_op_find("unmap"), &args, &opts), 0);
	assert_false(is_mapped(args.addr));
	assert_false(is_mapped((char *)args.addr + LEN - page_bytes()));
	unmap_skirted(args.addr);
}

static void late_or_not_wanted_it_is_done(const struct ktask_opts *opts)
{
	char *at = map_skirted(LEN);
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = at,
				      .len = 16 * page_bytes() };

	/* Too little for several threads. */
	assert_int_equal(ktask_op_run(ktask_op_find("unmap"), &args, opts), 0);
	assert_int_equal(opts->result->error, 0);
	assert_int_equal(opts->result->units, args.len);
	assert_false(is_mapped(at));
	assert_false(is_mapped(at + args.len - page_bytes()));
	assert_true(is_mapped(at + args.len));
	unmap_skirted(at);
}

/* So long that the caller has looked up by the end of it. */
static bool linger_in_call(long number, const long args[6], long *result)
{
	if (number != SYS_munmap)
		return false;
	*result = syscalls_pass(number, args) ? -errno : 0;
	usleep(5000);
	return true;
}

static void what_is_unmapped_is_no_failure(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.result = &result;
	opts.deadline_ns = 1;
	late_or_not_wanted_it_is_done(&opts);
	opts.deadline_ns = 0;
	opts.progress_func = stop_job;
	opts.progress_ms = 1;
	syscalls_answer = linger_in_call;
	late_or_not_wanted_it_is_done(&opts);
	syscalls_answer = NULL;
}

/* As many mappings as the kernel allows: the next split is refused. */
static int refused_for_want_of_mappings(void *arg)
{
	char *at = map_skirted(LEN), *many;
	size_t nr = 70000;

	many = mmap(NULL, nr * page_bytes(), PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ktest_check(many != MAP_FAILED);
	for (size_t i = 0; i < nr; i += 2)
		if (mprotect(many + i * page_bytes(), page_bytes(), PROT_READ))
			break;
	/* Two mappings each: one may be left. */
	mprotect(at - SKIRT, page_bytes(), PROT_READ);
	ktest_check(munmap(at + page_bytes(), page_bytes()) == -1);
	ktest_check(errno == ENOMEM);
	ktest_check(ktask_unmap(at, LEN) == -ENOMEM);
	ktest_check(is_intact(at, 0, LEN + 2 * SKIRT));
	/* At its edge nothing is split. */
	ktest_check(ktask_unmap(at, LEN + SKIRT) == 0);
	ktest_check(!is_mapped(at));
	return 0;
}

static void what_is_refused_is_untouched(void **state)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long most = 0;

	if (!file || fscanf(file, "%lu", &most) != 1 || most > 70000)
		ktest_skip("%lu mappings are allowed", most);
	fclose(file);
	assert_int_equal(ktest_in_child(refused_for_want_of_mappings, NULL), 0);
}

static int sealed_stays(void *arg)
{
	char *at = map_skirted(LEN);

	if (syscall(SYS_mseal, at - SKIRT, LEN + 2 * SKIRT, 0))
		return 77;
	ktest_check(ktask_unmap(at, LEN) == -EPERM);
	ktest_check(is_intact(at, 0, LEN + 2 * SKIRT));
	return 0;
}

static void sealed_memory_is_untouched(void **state)
{
	int status = ktest_in_child(sealed_stays, NULL);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		ktest_skip("the kernel has no mseal()");
	assert_int_equal(status, 0);
}

static void bad_ranges_are_refused(void **state)
{
	char *at = map_skirted(LEN);

	assert_int_equal(ktask_unmap(at + 1, LEN), -EINVAL);
	assert_int_equal(ktask_unmap(at, SIZE_MAX), -EINVAL);
	assert_int_equal(ktask_unmap(at, 0), 0);
	assert_true(is_intact(at, 0, LEN + 2 * SKIRT));
	unmap_skirted(at);
}

KTEST_MAIN(KTEST(the_middle_of_a_mapping_goes),
	   KTEST(unaligned_edges_are_kept_to),
	   KTEST(holes_and_many_mappings_are_unmapped),
	   KTEST(locked_memory_goes),
	   KTEST(dirty_file_pages_keep_their_contents),
	   KTEST(cancelling_does_not_leave_half),
	   KTEST(what_is_unmapped_is_no_failure),
	   KTEST(what_is_refused_is_untouched),
	   KTEST(sealed_memory_is_untouched), KTEST(bad_ranges_are_refused))
