/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The mappings of a range, asked for by ioctl or read from maps or smaps, are
 * the same; operations work where the ioctl is missing, and without /proc.
 */
#include "ktest.h"

#include <sys/ioctl.h>

#include "pages.h"
#undef MIB
#include "ops/mapping.h"
#include "refuse.h"

#define LEN (32 * MIB)
#define NO_FILTER 70

struct list {
	struct mapping at[64];
	unsigned nr;
};

static int add_mapping(const struct mapping *mapping, void *arg)
{
	struct list *list = arg;

	ktest_check(list->nr < 64);
	list->at[list->nr++] = *mapping;
	return 0;
}

static struct list list_of(char *at, unsigned want)
{
	struct list list = { .nr = 0 };
	uintptr_t start = (uintptr_t)at;

	ktest_check(mapping_each(start, start + LEN, want, add_mapping,
				 &list) == 0);
	return list;
}

/* Of every kind, with a hole, and neighbours on both sides. */
static char *make_mappings(void)
{
	char *at = map_private(LEN);
	int fd = memory_file(4 * MIB);

	mprotect(at + 2 * MIB, MIB, PROT_READ);
	mprotect(at + 5 * MIB, MIB, PROT_NONE);
	munmap(at + 8 * MIB, 2 * MIB);
	mmap(at + 12 * MIB, 4 * MIB, PROT_READ | PROT_WRITE,
	     MAP_SHARED | MAP_FIXED, fd, 0);
	mmap(at + 18 * MIB, 4 * MIB, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	close(fd);
	return at;
}

static void check_same(const struct list *a, const struct list *b)
{
	ktest_check(a->nr == b->nr);
	for (unsigned i = 0; i < a->nr; i++) {
		const struct mapping *x = &a->at[i], *y = &b->at[i];

		ktest_check(x->start == y->start && x->end == y->end);
		ktest_check(x->writable == y->writable);
		ktest_check(x->shared == y->shared);
		if (x->page_bytes && y->page_bytes)
			ktest_check(x->page_bytes == y->page_bytes);
	}
}

static bool refuse_query(void)
{
	unsigned query = (unsigned)_IOC(_IOC_READ | _IOC_WRITE, 'f', 17, 104);

	return refuse_call(SYS_ioctl, 1, query, query, ENOTTY);
}

static int read_both_ways(void *arg)
{
	char *at = make_mappings();
	struct list asked = list_of(at, MAPPING_PAGE);
	struct list smaps = list_of(at, MAPPING_PAGE | MAPPING_LOCKED);
	struct list maps;

	if (!refuse_query())
		return NO_FILTER;
	maps = list_of(at, 0);
	ktest_check(asked.nr >= 9);
	check_same(&asked, &smaps);
	check_same(&asked, &maps);
	for (unsigned i = 0; i < smaps.nr; i++)
		ktest_check(smaps.at[i].page_bytes == page_bytes());
	ktest_check(mapping_each((uintptr_t)at, (uintptr_t)at + LEN,
				 MAPPING_PAGE | MAPPING_CHEAP, add_mapping,
				 &maps) == -ENOTTY);
	/* What it takes to unmap and discard by several threads. */
	maps = list_of(at, MAPPING_CHEAP);
	check_same(&asked, &maps);
	return 0;
}

static void all_ways_agree(void **state)
{
	int status = ktest_in_child(read_both_ways, NULL);

	if (status == NO_FILTER << 8)
		ktest_skip("no seccomp filters here");
	assert_int_equal(status, 0);
}

/* Reading them would take longer than the job. */
static int among_many(void *arg)
{
	char *at = make_mappings();
	char *many = map_private(LEN);
	struct list list = { .nr = 0 };

	/* Lower, as the text is read from the lowest on. */
	ktest_check(many < at);
	for (size_t i = 0; i < LEN; i += 16 * page_bytes())
		mprotect(many + i, page_bytes(), PROT_READ);
	if (!refuse_query())
		return NO_FILTER;
	ktest_check(mapping_each((uintptr_t)at, (uintptr_t)at + LEN,
				 MAPPING_CHEAP, add_mapping, &list) == -E2BIG);
	ktest_check(list.nr == 0);
	list_of(at, 0);
	return 0;
}

static void a_cheap_answer_ends_where_there_are_many(void **state)
{
	int status = ktest_in_child(among_many, NULL);

	if (status == NO_FILTER << 8)
		ktest_skip("no seccomp filters here");
	assert_int_equal(status, 0);
}

/* The text ends in the middle of the range. */
static int populate_many(void *arg)
{
	const unsigned *flags = arg;
	char *at = map_private(LEN);

	for (size_t i = 0; i < LEN; i += 16 * page_bytes())
		ktest_check(!madvise(at + i, page_bytes(), MADV_DONTDUMP));
	if (!refuse_query())
		return NO_FILTER;
	ktest_check(ktask_populate(at, LEN, *flags) == 0);
	for (size_t i = 0; i < LEN; i += page_bytes())
		ktest_check(mapping_present(at + i));
	/* A hole behind it is found, where it is. */
	munmap(at + LEN - 8 * page_bytes(), page_bytes());
	ktest_check(ktask_populate(at, LEN, *flags) == -ENOMEM);
	return 0;
}

static void many_small_mappings_are_populated(void **state)
{
	static unsigned flags[] = { 0, KTASK_POPULATE_READ,
				    KTASK_POPULATE_TOUCH };

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(flags); i++) {
		int status = ktest_in_child(populate_many, &flags[i]);

		if (status == NO_FILTER << 8)
			ktest_skip("no seccomp filters here");
		assert_int_equal(status, 0);
	}
}

static int visit_twice(const struct mapping *mapping, void *arg)
{
	return ++*(int *)arg == 2 ? 7 : 0;
}

static void a_visitor_can_end_the_walk(void **state)
{
	char *at = make_mappings();
	uintptr_t start = (uintptr_t)at;
	int visits = 0;

	assert_int_equal(
		mapping_each(start, start + LEN, 0, visit_twice, &visits), 7);
	visits = 0;
	assert_int_equal(mapping_each(start, start + LEN, MAPPING_LOCKED,
				      visit_twice, &visits),
			 7);
	assert_int_equal(visits, 2);
	munmap(at, LEN);
}

static int run_operations(void *arg)
{
	bool (*refuse)(void) = arg;
	char *at = map_private(LEN);

	if (!refuse())
		return NO_FILTER;
	ktest_check(ktask_populate(at, LEN, 0) == 0);
	ktest_check(ktask_discard(at, LEN, 0) == 0);
	ktest_check(ktask_fill(at, LEN, NULL, 0, 0) == 0);
	if (ktask_lock(at, page_bytes(), 0) == 0)
		ktest_check(ktask_lock(at, LEN, 0) == 0 || geteuid() != 0);
	return 0;
}

/* open() of anything for reading, which is how /proc is read. */
static bool refuse_open(void)
{
	return refuse_call(SYS_openat, 0, (unsigned)-100, (unsigned)-100,
			   EACCES);
}

static void operations_need_none_of_it(void **state)
{
	int no_query = ktest_in_child(run_operations, refuse_query);
	int no_open = ktest_in_child(run_operations, refuse_open);

	if (no_query == NO_FILTER << 8)
		ktest_skip("no seccomp filters here");
	assert_int_equal(no_query, 0);
	assert_int_equal(no_open, 0);
}

KTEST_MAIN(KTEST(all_ways_agree), KTEST(operations_need_none_of_it),
	   KTEST(a_cheap_answer_ends_where_there_are_many),
	   KTEST(many_small_mappings_are_populated),
	   KTEST(a_visitor_can_end_the_walk))
