/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * collapse: small pages become huge ones with the same contents; every error is
 * the plain call's and found where it is; where huge pages come too slowly the
 * rest stays as it was, and that is told.
 */
#include "ktest.h"

#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "pages.h"
#include "pattern.h"
#include "syscalls.h"

#define LEN (32 * MIB)
#define HUGE (2 * MIB)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* In small pages that may become huge. */
static char *filled(void)
{
	char *at = map_private(LEN);

	pattern_fill(at, LEN, 0);
	madvise(at, LEN, MADV_HUGEPAGE);
	return at;
}

static void same_contents(const char *at, size_t start, size_t end)
{
	assert_true(pattern_same(at + start, end - start, start));
}

/* Bytes of [at, at + len) in huge pages, by the kernel's account of mappings. */
static size_t huge_bytes(const char *at, size_t len)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long from, to, start = 0, end = 0, kib;
	size_t bytes = 0;
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			start = from;
			end = to;
		}
		if (sscanf(line, "AnonHugePages: %lu", &kib) == 1 &&
		    start >= (uintptr_t)at && end <= (uintptr_t)at + len)
			bytes += kib * 1024;
	}
	fclose(file);
	return bytes;
}

/*
 * On Linux 6.1 pages that NUMA balancing has marked do not become huge; it leaves
 * a thread alone whose policy says where memory shall be.
 */
static void need_collapse(void)
{
	char *at;
	int error;

	syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0);
	at = filled();
	error = madvise(at, HUGE, MADV_COLLAPSE);

	munmap(at, LEN);
	if (error)
		ktest_skip("no huge page to be had: %s", strerror(errno));
}

static void small_pages_become_huge(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at;

	need_collapse();
	at = filled();
	assert_int_equal(huge_bytes(at, LEN), 0);
	assert_int_equal(
		run_op("collapse", at, LEN, KTASK_COLLAPSE_ALL, &result), 0);
	assert_int_equal(huge_bytes(at, LEN), LEN);
	assert_int_equal(result.units, LEN);
	assert_int_equal(result.threads, 1);
	same_contents(at, 0, LEN);
	/* Once more costs nothing and changes nothing. */
	assert_int_equal(ktask_collapse(at, LEN, 0), 0);
	same_contents(at, 0, LEN);
	munmap(at, LEN);
}

static void what_is_no_whole_huge_page_stays(void **state)
{
	char *at;

	need_collapse();
	at = filled();
	assert_int_equal(
		ktask_collapse(at + 4096, LEN - 8192, KTASK_COLLAPSE_ALL), 0);
	assert_int_equal(huge_bytes(at, LEN), LEN - 2 * HUGE);
	same_contents(at, 0, LEN);
	munmap(at, LEN);
}

static void holes_are_reported_after_the_rest(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at;

	need_collapse();
	at = filled();
	munmap(at + 8 * HUGE + 4096, 4096);
	assert_int_equal(
		run_op("collapse", at, LEN, KTASK_COLLAPSE_ALL, &result),
		-ENOMEM);
	assert_int_equal(result.fail_offset, 8 * HUGE + 4096);
	assert_int_equal(huge_bytes(at, LEN), LEN - HUGE);
	same_contents(at, 0, 8 * HUGE);
	same_contents(at, 9 * HUGE, LEN);
	munmap(at, LEN);
}

/* As much is done as by the plain call on this kernel. */
static void what_is_not_there_is_told(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	size_t plain_bytes;
	char *at;
	int plain;

	need_collapse();
	at = filled();
	madvise(at + 10 * HUGE, HUGE, MADV_DONTNEED);
	plain = madvise(at, LEN, MADV_COLLAPSE) ? -errno : 0;
	plain_bytes = huge_bytes(at, LEN);
	munmap(at, LEN);
	at = filled();
	madvise(at + 10 * HUGE, HUGE, MADV_DONTNEED);
	assert_int_equal(
		run_op("collapse", at, LEN, KTASK_COLLAPSE_ALL, &result),
		plain);
	if (plain)
		assert_int_equal(result.fail_offset, 10 * HUGE);
	assert_int_equal(huge_bytes(at, LEN), plain_bytes);
	munmap(at, LEN);
}

static void memory_without_huge_pages_is_refused(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at;

	need_collapse();
	at = filled();
	madvise(at, LEN, MADV_NOHUGEPAGE);
	assert_int_equal(madvise(at, LEN, MADV_COLLAPSE), -1);
	assert_int_equal(run_op("collapse", at, LEN, 0, &result), -errno);
	assert_int_equal(result.fail_offset, 0);
	assert_int_equal(huge_bytes(at, LEN), 0);
	same_contents(at, 0, LEN);
	munmap(at, LEN);
}

/* ---- refusals ---- */

static uintptr_t refused; /* any call that touches this byte fails */
static int refusal;

static bool refuse(long number, const long args[6], long *result)
{
	uintptr_t start = (uintptr_t)args[0];

	if (number != SYS_madvise || args[2] != MADV_COLLAPSE ||
	    refused < start || refused >= start + (uintptr_t)args[1])
		return false;
	/* What lies before it was done: the kernel goes upwards. */
	if (refused > start)
		syscalls_pass(number,
			      (const long[6]){ args[0], (long)(refused - start),
					       args[2] });
	*result = -refusal;
	return true;
}

/* The huge page at @offset is refused to a call for @start to @end. */
static void try_refusal(int error, size_t offset, size_t start, size_t end)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at = filled();

	refusal = error;
	refused = (uintptr_t)at + offset;
	syscalls_answer = refuse;
	assert_int_equal(run_op("collapse", at + start, end - start,
				KTASK_COLLAPSE_ALL, &result),
			 -error);
	syscalls_answer = NULL;
	assert_int_equal(result.error, -error);
	assert_int_equal(result.fail_offset, offset - start);
	same_contents(at, 0, LEN);
	munmap(at, LEN);
}

static void every_refusal_is_passed_on(void **state)
{
	static const int errors[] = { ENOMEM, EBUSY, EAGAIN,
				      EINVAL, EPERM, ENOSYS };
	static const size_t offsets[] = { 0, 6 * HUGE, LEN - HUGE };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(errors); i++)
		for (unsigned j = 0; j < KTEST_ARRAY_SIZE(offsets); j++)
			try_refusal(errors[i], offsets[j], 0, LEN);
}

/* Neither edge of the range is one of a huge page. */
static void a_refusal_is_found_in_a_ragged_range(void **state)
{
	static const size_t rags[] = { 4096, HUGE / 2, HUGE - 4096 };
	unsigned turn = 0;

	/* The library goes by four huge pages: each of those with each rag. */
	for (size_t page = HUGE; page < LEN - HUGE; page += HUGE) {
		size_t rag = rags[turn++ % KTEST_ARRAY_SIZE(rags)];

		try_refusal(EAGAIN, page, rag, LEN - HUGE + rag);
	}
}

/* ---- the guard ---- */

static _Atomic uint64_t skipped_ns;
static uint64_t slow_ns; /* what each call seems to take */

int clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t skipped = atomic_load(&skipped_ns);

	if (syscalls_pass(SYS_clock_gettime,
			  (const long[6]){ clock, (long)now }))
		return -1;
	if (clock == CLOCK_THREAD_CPUTIME_ID)
		now->tv_sec += (time_t)(skipped / 1000000000);
	return 0;
}

static bool crawl(long number, const long args[6], long *result)
{
	if (number != SYS_madvise || args[2] != MADV_COLLAPSE)
		return false;
	*result = syscalls_pass(number, args) ? -errno : 0;
	atomic_fetch_add(&skipped_ns, slow_ns);
	return true;
}

static void slow_memory_keeps_its_small_pages(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at;

	need_collapse();
	at = filled();
	slow_ns = 3600 * 1000000000ull;
	syscalls_answer = crawl;
	assert_int_equal(run_op("collapse", at, LEN, 0, &result), -ETIME);
	assert_true(result.fail_offset > 0);
	assert_true(result.fail_offset < LEN);
	assert_int_equal(huge_bytes(at, LEN), result.fail_offset);
	same_contents(at, 0, LEN);
	/* Who wants it all the same gets it. */
	assert_int_equal(ktask_collapse(at, LEN, KTASK_COLLAPSE_ALL), 0);
	syscalls_answer = NULL;
	assert_int_equal(huge_bytes(at, LEN), LEN);
	same_contents(at, 0, LEN);
	munmap(at, LEN);
}

static int in_another(void *arg)
{
	char *at = filled();
	struct ktask_op_args args = { .addr = at,
				      .len = LEN,
				      .flags = KTASK_COLLAPSE_ALL,
				      .pid = getppid() };

	/* The child's copy lies where the parent's memory lies. */
	args.addr = arg;
	return -ktask_op_run(ktask_op_find("collapse"), &args, NULL);
}

static void of_another_process(void **state)
{
	char *at;
	int status;

	need_collapse();
	if (KTEST_TSAN)
		ktest_skip("TSAN has no threads after fork");
	at = filled();
	status = ktest_in_child(in_another, at) >> 8;
	if (status == EPERM || status == ENOSYS || status == EINVAL)
		ktest_skip("not permitted: %s", strerror(status));
	assert_int_equal(status, 0);
	assert_int_equal(huge_bytes(at, LEN), LEN);
	same_contents(at, 0, LEN);
	munmap(at, LEN);
}

static void of_nobody(void **state)
{
	struct ktask_op_args args = { .addr = (void *)MIB,
				      .len = LEN,
				      .pid = 0x7ffffffe };

	assert_int_equal(ktask_op_run(ktask_op_find("collapse"), &args, NULL),
			 -ESRCH);
}

KTEST_MAIN(KTEST(small_pages_become_huge),
	   KTEST(what_is_no_whole_huge_page_stays),
	   KTEST(holes_are_reported_after_the_rest),
	   KTEST(what_is_not_there_is_told),
	   KTEST(memory_without_huge_pages_is_refused),
	   KTEST(every_refusal_is_passed_on),
	   KTEST(a_refusal_is_found_in_a_ragged_range),
	   KTEST(slow_memory_keeps_its_small_pages), KTEST(of_another_process),
	   KTEST(of_nobody))
