/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that keeps all CPUs busy is seen to do so in the child of a fork as well,
 * whatever its parent's helpers used.
 */
#include "ktest.h"

#include "util/clock.h"
#include "util/cpus.h"

#define MS ((uint64_t)1000000)

static uint64_t process_ns; /* CPU time */

static uint64_t pretended_clock_ns(clockid_t clock)
{
	return clock == CLOCK_PROCESS_CPUTIME_ID ? process_ns : 0;
}

#define clock_ns pretended_clock_ns
#include "preload/ahead/next_window.c"
#undef clock_ns

struct large_mapping large_mappings[AHEAD_MAPPINGS];
atomic_size_t large_mappings_nr;

void ahead_note_cost(const struct large_mapping *mapping, size_t nr_pages)
{
}

void shim_count_ahead(size_t bytes, uint64_t cpu_ns)
{
}

bool ahead_note_touches(const struct touch_effort *then,
			const struct touch_effort *now)
{
	return true;
}

size_t large_mappings_touched(void)
{
	return 0;
}

bool ahead_wants_huge(const struct large_mapping *mapping, uint64_t now_ns)
{
	return false;
}

size_t ahead_unit_pages(const struct large_mapping *mapping)
{
	return 1;
}

bool ahead_advise_huge(struct large_mapping *mapping,
		       const struct touch_window *window)
{
	return false;
}

bool ahead_has_memory(struct large_mapping *mapping)
{
	return false;
}

bool ahead_make(struct large_mapping *mapping)
{
	return false;
}

size_t ahead_others_pages(const struct large_mapping *mapping)
{
	return 0;
}

bool ahead_may_make_shared(struct large_mapping *mapping)
{
	return true;
}

bool ahead_may_have_threads(void)
{
	return false;
}

bool shim_is_dry(void)
{
	return false;
}

bool grown_areas_is_private(uintptr_t start, uintptr_t end)
{
	return true;
}

void large_mapping_give_up(struct large_mapping *mapping)
{
}

/* The program has all CPUs from @begin_ns on, for a tenth of a second. */
static bool fills_cpus(uint64_t begin_ns)
{
	struct kt_cpus cpus;

	if (!cpus_get_affinity(&cpus))
		ktest_skip("the affinity cannot be read");
	program_fills_cpus(begin_ns);
	process_ns += 100 * MS * cpus_count(&cpus);
	return program_fills_cpus(begin_ns + 100 * MS);
}

static void many_cpus_can_be_full(void **state)
{
	ahead_forget_effort();
	process_ns = MS;
	assert_true(fills_cpus(MS));
}

static void what_helpers_of_the_parent_used_is_forgotten(void **state)
{
	struct large_mapping *mapping = &large_mappings[0];

	process_ns = 1000000 * MS;
	mapping->result.cpu_ns = 900000 * MS;
	ahead_note_result(mapping);
	assert_true(fills_cpus(1000 * MS));
	/* fork() */
	process_ns = 0;
	ahead_forget_effort();
	assert_true(fills_cpus(1200 * MS));
}

KTEST_MAIN(KTEST(many_cpus_can_be_full),
	   KTEST(what_helpers_of_the_parent_used_is_forgotten))
