/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Huge pages are given up where most of them take longer than small ones, not for a few
 * that the host had taken back, and are tried again when small ones become as slow.  What
 * the program's own touches cost is judged only where faults tell how large pages were.
 */
#include "ktest.h"

#include "ahead/ahead_window.h"
#include "ahead/page_cost.h"

#define BLOCK AHEAD_BLOCK_PAGES
#define SMALL_NS 400 /* a small page */
#define HUGE_NS ((uint64_t)85000) /* a huge page */
#define COLD_NS ((uint64_t)3000000) /* one that the host has to fetch */
#define MS ((uint64_t)1000000)

static void make_small(struct page_costs *costs, size_t nr, uint64_t page_ns)
{
	for (size_t i = 0; i < nr; i++)
		page_costs_note_small(costs, BLOCK * page_ns, BLOCK);
}

/* Each as a helper does. */
static void make_huge(struct page_costs *costs, size_t nr, uint64_t ns)
{
	for (size_t i = 0; i < nr; i++)
		page_costs_note_huge(
			costs, ns, BLOCK,
			ns >= page_costs_limit_ns(costs, BLOCK) ? BLOCK : 0);
}

static void fast_ones_are_kept(void **unused)
{
	struct page_costs costs = { 0 };

	make_small(&costs, 2, SMALL_NS);
	make_huge(&costs, 1000, HUGE_NS);
	assert_false(page_costs_huge_is_slow(&costs));
}

static void some_cold_ones_are_no_reason(void **unused)
{
	struct page_costs costs = { 0 };

	make_small(&costs, 2, SMALL_NS);
	make_huge(&costs, 2, COLD_NS);
	make_huge(&costs, 6, HUGE_NS);
	assert_true(costs.huge.cpu_ns / costs.huge.nr_pages > SMALL_NS);
	assert_false(page_costs_huge_is_slow(&costs));
}

static void mostly_cold_ones_are(void **unused)
{
	struct page_costs costs = { 0 };

	make_small(&costs, 2, SMALL_NS);
	make_huge(&costs, 3, HUGE_NS);
	make_huge(&costs, 4, COLD_NS);
	/* Seven are too few to tell. */
	assert_false(page_costs_huge_is_slow(&costs));
	make_huge(&costs, 1, COLD_NS);
	assert_true(page_costs_huge_is_slow(&costs));
}

static void they_are_tried_again_when_small_ones_are_as_slow(void **unused)
{
	struct page_costs costs = { 0 };

	make_small(&costs, 100, SMALL_NS);
	make_huge(&costs, 8, COLD_NS);
	assert_true(page_costs_huge_is_slow(&costs));
	make_small(&costs, 8, COLD_NS / BLOCK);
	assert_true(page_costs_huge_is_slow(&costs));
	make_small(&costs, 20, 2 * COLD_NS / BLOCK);
	assert_false(page_costs_huge_is_slow(&costs));
}

static void without_small_ones_nobody_knows(void **unused)
{
	struct page_costs costs = { 0 };

	make_huge(&costs, 100, COLD_NS);
	assert_false(page_costs_huge_is_slow(&costs));
	page_costs_note_small(&costs, 1, 1);
	assert_int_equal(costs.small.nr_pages, 0);
}

/* ---- the program's own touches ---- */

static struct touch_effort effort;

/* Return: whether it was enough to tell. */
static bool touch_pages_now(struct page_costs *costs, uint64_t ns, size_t pages,
			    size_t faults)
{
	const struct touch_effort then = effort;

	effort.cpu_ns += ns;
	effort.pages += pages;
	effort.faults += faults;
	return page_costs_note_touches(costs, &then, &effort);
}

static void faults_tell_which_pages_they_were(void **unused)
{
	struct page_costs costs = { 0 };

	assert_false(touch_pages_now(&costs, 7 * MS, 8 * BLOCK, 8 * BLOCK));
	assert_true(touch_pages_now(&costs, 9 * MS, 8 * BLOCK, 8 * BLOCK));
	assert_int_equal(costs.small.nr_pages, 8 * BLOCK);
	assert_true(touch_pages_now(&costs, 8 * MS, 80 * BLOCK, 80));
	assert_int_equal(costs.huge.nr_pages, 80 * BLOCK);
	assert_false(page_costs_huge_is_slow(&costs));
	for (int i = 0; i < 4; i++)
		touch_pages_now(&costs, 400 * MS, 80 * BLOCK, 80);
	assert_true(page_costs_huge_is_slow(&costs));
}

/* One mapping of huge pages and one of small ones at once. */
static void a_mixture_alone_tells_nothing(void **unused)
{
	struct page_costs costs = { 0 };

	assert_true(touch_pages_now(&costs, 90 * MS, 80 * BLOCK, 40 * BLOCK));
	assert_int_equal(costs.small.nr_pages + costs.huge.nr_pages, 0);
}

/* As where another process has made them. */
static void pages_may_come_without_faults(void **unused)
{
	struct page_costs costs = { 0 };

	touch_pages_now(&costs, 9 * MS, 8 * BLOCK, 8 * BLOCK);
	assert_true(touch_pages_now(&costs, 9 * MS, 80 * BLOCK, 0));
	assert_int_equal(costs.huge.nr_pages, 80 * BLOCK);
	assert_int_equal(costs.huge.cpu_ns, 9 * MS);
}

/* As where one thread has come to huge pages, and the other one has not. */
static void a_mixture_tells_beside_small_ones(void **unused)
{
	struct page_costs costs = { 0 };
	uint64_t small_ns = 40 * BLOCK * (uint64_t)SMALL_NS;

	touch_pages_now(&costs, 2 * small_ns, 80 * BLOCK, 80 * BLOCK);
	touch_pages_now(&costs, small_ns + 40 * HUGE_NS, 80 * BLOCK,
			40 * BLOCK + 40);
	assert_false(page_costs_huge_is_slow(&costs));
	assert_int_equal(costs.slow_pages, 0);
	costs.huge = (struct page_cost){ 0 };
	touch_pages_now(&costs, small_ns + 40 * COLD_NS, 80 * BLOCK,
			40 * BLOCK + 40);
	assert_true(page_costs_huge_is_slow(&costs));
	/* Their small pages do not count as ones of the last. */
	assert_int_equal(costs.small.cpu_ns / costs.small.nr_pages, SMALL_NS);
}

KTEST_MAIN(KTEST(fast_ones_are_kept), KTEST(some_cold_ones_are_no_reason),
	   KTEST(mostly_cold_ones_are),
	   KTEST(they_are_tried_again_when_small_ones_are_as_slow),
	   KTEST(without_small_ones_nobody_knows),
	   KTEST(faults_tell_which_pages_they_were),
	   KTEST(a_mixture_alone_tells_nothing),
	   KTEST(pages_may_come_without_faults),
	   KTEST(a_mixture_tells_beside_small_ones))
