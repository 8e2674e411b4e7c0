/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * migrate: pages that are on none of the nodes are moved, in turn, the others
 * are left alone; contents and policies stay; what cannot be moved is named.
 *
 * Most machines have one node.  So the kernel's answers to move_pages(2) are
 * made up here for a range: where its pages are, and which of them will move.
 */
#include "ktest.h"

#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "pages.h"
#include "pattern.h"
#include "syscalls.h"

#define LEN (16 * MIB)
#define PAGES (LEN / 4096)
/* What the kernel itself moves: each page of it interrupts every CPU, which takes
 * milliseconds where these are emulated. */
#define SOME (4 * MIB)
#define MPOL_BIND 2
#define MPOL_LOCAL 4
#define MPOL_F_ADDR 2
#define MPOL_MF_MOVE 2
#define MPOL_MF_MOVE_ALL 4

static char *at;
static _Atomic int node_of[PAGES]; /* or -errno */
static _Atomic int stuck[PAGES]; /* 0, or -errno instead of moving */
static _Atomic unsigned nr_moved[PAGES];
static _Atomic long flags_seen;
static int refusal; /* of every call that moves */

static void answer_page(size_t i, const int *to, int *status)
{
	if (!to || node_of[i] < 0) {
		*status = node_of[i];
	} else if (stuck[i]) {
		*status = stuck[i];
	} else {
		node_of[i] = *to;
		nr_moved[i]++;
		*status = *to;
	}
}

static bool answer(long number, const long args[6], long *result)
{
	char **pages = (char **)args[2];
	const int *nodes = (const int *)args[3];
	int *status = (int *)args[4];

	if (number != SYS_move_pages)
		return false;
	*result = 0;
	if (nodes && refusal) {
		*result = -refusal;
		return true;
	}
	if (nodes)
		atomic_store(&flags_seen, args[5]);
	for (long i = 0; i < args[1]; i++)
		answer_page((size_t)(pages[i] - at) / 4096,
			    nodes ? &nodes[i] : NULL, &status[i]);
	return true;
}

static int begin(void **state)
{
	if (page_bytes() != 4096)
		return -1;
	at = map_private(LEN);
	memset(at, 'x', LEN);
	for (size_t i = 0; i < PAGES; i++) {
		node_of[i] = 0;
		stuck[i] = 0;
		nr_moved[i] = 0;
	}
	refusal = 0;
	syscalls_answer = answer;
	return 0;
}

static int end(void **state)
{
	syscalls_answer = NULL;
	munmap(at, LEN);
	return 0;
}

static int migrate_part(unsigned long nodes, size_t from, size_t to,
			unsigned flags, struct ktask_opts *opts)
{
	struct ktask_op_args args = { .addr = at + from,
				      .len = to - from,
				      .flags = flags,
				      .src = &nodes,
				      .src_len = 8 };

	return ktask_op_run(ktask_op_find("migrate"), &args, opts);
}

static int migrate(unsigned long nodes, unsigned flags,
		   struct ktask_result *result)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.result = result;
	return migrate_part(nodes, 0, LEN, flags, &opts);
}

static void all_pages_are_moved_once(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;

	assert_int_equal(migrate(1 << 2, 0, &result), 0);
	assert_int_equal(result.units, LEN);
	assert_int_equal(flags_seen, MPOL_MF_MOVE);
	for (size_t i = 0; i < PAGES; i++) {
		assert_int_equal(node_of[i], 2);
		assert_int_equal(nr_moved[i], 1);
	}
}

static void what_is_there_already_is_left_alone(void **state)
{
	for (size_t i = 0; i < PAGES; i += 3)
		node_of[i] = 2;
	for (size_t i = 1; i < PAGES; i += 3)
		node_of[i] = -ENOENT;
	assert_int_equal(migrate(1 << 2, KTASK_MIGRATE_SHARED, NULL), 0);
	assert_int_equal(flags_seen, MPOL_MF_MOVE_ALL);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(nr_moved[i], i % 3 == 2);
}

static void several_nodes_share(void **state)
{
	unsigned nr[8] = { 0 };

	assert_int_equal(migrate(1 << 1 | 1 << 3, 0, NULL), 0);
	for (size_t i = 0; i < PAGES; i++) {
		nr[node_of[i]]++;
		/* A huge page is not torn. */
		assert_int_equal(node_of[i], node_of[i / 512 * 512]);
	}
	assert_int_equal(nr[1], PAGES / 2);
	assert_int_equal(nr[3], PAGES / 2);
}

static void what_stays_is_named_and_keeps_no_other(void **state)
{
	static const int errors[] = { -EACCES, -EBUSY, -ENOMEM, -EIO };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(errors); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		unsigned stayed = 0;

		for (size_t page = 0; page < PAGES; page++)
			node_of[page] = 0;
		stuck[700] = errors[i];
		stuck[PAGES - 1] = -EBUSY;
		assert_int_equal(migrate(1 << 2, 0, &result), errors[i]);
		assert_int_equal(result.error, errors[i]);
		assert_int_equal(result.fail_offset, 700 * 4096);
		for (size_t page = 0; page < PAGES; page++)
			stayed += node_of[page] != 2;
		assert_int_equal(stayed, 2);
	}
}

/* Pages for one node after another, up to the first node that one of them does
 * not go to; of the rest, and of those, no status is told. */
static bool answer_as_the_kernel(long number, const long args[6], long *result)
{
	char **pages = (char **)args[2];
	const int *nodes = (const int *)args[3];
	int *status = (int *)args[4], unused;
	long first = 0, i, nr_stuck;

	if (number != SYS_move_pages || !nodes)
		return answer(number, args, result);
	for (; first < args[1]; first = i) {
		for (i = first, nr_stuck = 0;
		     i < args[1] && nodes[i] == nodes[first]; i++) {
			size_t page = (size_t)(pages[i] - at) / 4096;

			nr_stuck += stuck[page] != 0;
			answer_page(page, &nodes[i], &unused);
		}
		*result = nr_stuck + args[1] - i;
		if (nr_stuck)
			return true;
		for (long done = first; done < i; done++)
			status[done] = nodes[done];
	}
	*result = 0;
	return true;
}

static void what_stays_keeps_no_other_node_waiting(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.max_threads = 1;
	syscalls_answer = answer_as_the_kernel;
	stuck[800] = -EBUSY;
	/* Not from the edge of a huge page. */
	assert_int_equal(migrate_part(1 << 1 | 1 << 2, MIB, LEN, 0, &opts),
			 -EBUSY);
	for (size_t i = MIB / 4096; i < PAGES; i++)
		assert_true((node_of[i] != 0) == (i != 800));
}

static _Atomic size_t page_size_told;

/* What a query of a mapping tells of its pages. */
int ioctl(int fd, unsigned long request, ...)
{
	static int (*real)(int fd, unsigned long request, ...);
	uint64_t *query;
	va_list list;
	int result;

	va_start(list, request);
	query = va_arg(list, uint64_t *);
	va_end(list);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "ioctl");
	result = real(fd, request, query);
	if (!result && (request & 0xffff) == ('f' << 8 | 17) && page_size_told)
		query[6] = page_size_told;
	return result;
}

static void huge_pages_at_ragged_edges_are_moved(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	size_t i, moved;

	opts.max_threads = 1;
	page_size_told = 2 * MIB;
	assert_int_equal(migrate_part(1 << 2, MIB, LEN - MIB, 0, &opts), 0);
	page_size_told = 0;
	for (i = 0, moved = 0; i < PAGES; i++)
		moved += nr_moved[i];
	if (moved > 2 * LEN / (2 * MIB))
		ktest_skip("a kernel that cannot be asked for a mapping");
	for (i = 0; i < PAGES; i += 512) {
		for (size_t page = i + 1; page < i + 512; page++)
			nr_moved[i] += nr_moved[page];
		assert_true(nr_moved[i] > 0);
	}
}

/* A page that is in use for a moment only is moved the next time. */
static bool answer_later(long number, const long args[6], long *result)
{
	bool answered = answer(number, args, result);

	if (number == SYS_move_pages && args[3])
		stuck[5] = 0;
	return answered;
}

static void busy_pages_are_tried_again(void **state)
{
	stuck[5] = -EBUSY;
	syscalls_answer = answer_later;
	assert_int_equal(migrate(1 << 2, 0, NULL), 0);
	assert_int_equal(node_of[5], 2);
}

static void refusals_are_passed_on(void **state)
{
	static const int errors[] = { ENODEV, EACCES, EPERM,
				      ENOMEM, ENOSYS, ESRCH };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(errors); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;

		refusal = errors[i];
		assert_int_equal(migrate(1 << 2, 0, &result), -errors[i]);
		assert_int_equal(result.error, -errors[i]);
		assert_int_equal(result.fail_offset, 0);
		assert_int_equal(node_of[PAGES - 1], 0);
	}
}

static void holes_are_found_before_anything_is_moved(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;

	munmap(at + 9 * MIB, 4096);
	assert_int_equal(migrate(1 << 2, 0, &result), -EFAULT);
	assert_int_equal(result.fail_offset, 9 * MIB);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(nr_moved[i], 0);
}

/* ---- what the kernel itself says ---- */

static int migrate_some(unsigned long nodes, unsigned flags)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	return migrate_part(nodes, 0, SOME, flags, &opts);
}

static int mode_at(const char *addr)
{
	int mode = -1;

	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, addr, MPOL_F_ADDR))
		return -errno;
	return mode;
}

static void the_kernel_takes_part(void **state)
{
	int before = mode_at(at);

	syscalls_answer = NULL;
	if (before < 0)
		ktest_skip("no memory policies here: %s", strerror(-before));
	if (migrate_some(1, 0))
		ktest_skip("no pages may be moved");
	assert_int_equal(mode_at(at), before);
	assert_int_equal(migrate_some(1, KTASK_MIGRATE_BIND), 0);
	assert_int_equal(mode_at(at), MPOL_BIND);
	assert_int_equal(mode_at(at + SOME - 4096), MPOL_BIND);
	assert_int_equal(at[0], 'x');
	assert_memory_equal(at, at + 1, LEN - 1);
}

static void a_node_without_memory_is_refused(void **state)
{
	unsigned long nodes = 1ul << 63;

	syscalls_answer = NULL;
	if (migrate_some(1, 0))
		ktest_skip("no pages may be moved");
	assert_int_equal(ktask_migrate(at, SOME, &nodes, 64, 0), -ENODEV);
	assert_int_equal(
		ktask_migrate(at, SOME, &nodes, 64, KTASK_MIGRATE_BIND),
		-EINVAL);
}

/* Where the kernel says they are. */
static size_t pages_on(int node)
{
	static void *pages[SOME / 4096];
	static int where[SOME / 4096];
	size_t nr = 0;

	for (size_t i = 0; i < SOME / 4096; i++)
		pages[i] = at + i * 4096;
	assert_int_equal(
		syscall(SYS_move_pages, 0, SOME / 4096, pages, NULL, where, 0),
		0);
	for (size_t i = 0; i < SOME / 4096; i++)
		nr += where[i] == node;
	return nr;
}

/* The kernel moves pages by itself to who uses them, unless they have a policy
 * of their own. */
static void need_two_nodes(void)
{
	static const unsigned long nodes = 3;

	syscalls_answer = NULL;
	if (syscall(SYS_mbind, at, LEN, MPOL_BIND, &nodes, 3L, 0L))
		ktest_skip("there is no second node");
	/* Nor shall pages be marked for that already: Linux 6.0 to 6.5. */
	madvise(at, LEN, MADV_DONTNEED);
	pattern_fill(at, SOME, 0);
	if (migrate_some(2, 0))
		ktest_skip("there is no second node");
	assert_int_equal(migrate_some(1, 0), 0);
}

static void pages_go_to_another_node_and_back(void **state)
{
	static const unsigned long nodes[] = { 1, 2, 3 };

	need_two_nodes();
	pattern_fill(at, SOME, 0);
	assert_int_equal(ktask_migrate(at, SOME, &nodes[1], 2, 0), 0);
	assert_int_equal(pages_on(1), SOME / 4096);
	assert_true(pattern_same(at, SOME, 0));
	assert_int_equal(ktask_migrate(at, SOME, &nodes[0], 2, 0), 0);
	assert_int_equal(pages_on(0), SOME / 4096);
	assert_true(pattern_same(at, SOME, 0));
	/* Those that lie on one of the nodes stay. */
	assert_int_equal(ktask_migrate(at, SOME, &nodes[2], 2, 0), 0);
	assert_int_equal(pages_on(0), SOME / 4096);
}

static void huge_pages_go_as_a_whole(void **state)
{
	static const unsigned long node = 2;

	need_two_nodes();
	madvise(at, LEN, MADV_HUGEPAGE);
	madvise(at, LEN, MADV_DONTNEED);
	pattern_fill(at, SOME, 0);
	assert_int_equal(ktask_migrate(at, SOME, &node, 2, 0), 0);
	assert_int_equal(pages_on(1), SOME / 4096);
	assert_true(pattern_same(at, SOME, 0));
}

#define WITH_PAGES(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAGES(all_pages_are_moved_once),
		WITH_PAGES(what_is_there_already_is_left_alone),
		WITH_PAGES(several_nodes_share),
		WITH_PAGES(what_stays_is_named_and_keeps_no_other),
		WITH_PAGES(what_stays_keeps_no_other_node_waiting),
		WITH_PAGES(huge_pages_at_ragged_edges_are_moved),
		WITH_PAGES(busy_pages_are_tried_again),
		WITH_PAGES(refusals_are_passed_on),
		WITH_PAGES(holes_are_found_before_anything_is_moved),
		WITH_PAGES(the_kernel_takes_part),
		WITH_PAGES(a_node_without_memory_is_refused),
		WITH_PAGES(pages_go_to_another_node_and_back),
		WITH_PAGES(huge_pages_go_as_a_whole),
	};

	/* The kernel balances no memory that has a policy: Linux 6.0 to 6.5 say
	 * that pages which it marked for that are absent. */
	syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
