/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers that a percentage of the CPUs allows: rounded down, at least one
 * where there are two CPUs, never the caller's CPU, none at 0 percent.
 */
#include "ktest.h"

#include "core/caps.h"

static void limits_of_a_machine(void **state)
{
	static const unsigned cpus[] = { 0, 1, 2, 3, 4, 96, 288 };
	static const struct {
		unsigned percent, limits[7];
	} rows[] = {
		{ 0, { 0, 0, 0, 0, 0, 0, 0 } },
		{ 1, { 0, 0, 1, 1, 1, 1, 2 } },
		{ 50, { 0, 0, 1, 1, 2, 48, 144 } },
		{ 80, { 0, 0, 1, 2, 3, 76, 230 } },
		{ 100, { 0, 0, 1, 2, 3, 95, 287 } },
		{ 101, { 0, 0, 1, 2, 3, 95, 287 } },
		{ UINT32_MAX, { 0, 0, 1, 2, 3, 95, 287 } },
	};

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(rows); i++)
		for (unsigned j = 0; j < KTEST_ARRAY_SIZE(cpus); j++)
			assert_int_equal(kt_cap_limit(cpus[j], rows[i].percent),
					 rows[i].limits[j]);
}

/* The caller is somewhere else, as a rule: a node of one CPU may have one. */
static void limits_of_a_node(void **state)
{
	static const unsigned cpus[] = { 0, 1, 2, 4, 48 };
	static const struct {
		unsigned percent, limits[5];
	} rows[] = {
		{ 0, { 0, 0, 0, 0, 0 } },	    { 1, { 0, 1, 1, 1, 1 } },
		{ 80, { 0, 1, 1, 3, 38 } },	    { 100, { 0, 1, 2, 4, 48 } },
		{ UINT32_MAX, { 0, 1, 2, 4, 48 } },
	};

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(rows); i++)
		for (unsigned j = 0; j < KTEST_ARRAY_SIZE(cpus); j++)
			assert_int_equal(
				kt_cap_node_limit(cpus[j], rows[i].percent),
				rows[i].limits[j]);
	assert_int_equal(kt_cap_node_limit(UINT32_MAX, 100), UINT32_MAX);
}

static void large_numbers_do_not_overflow(void **state)
{
	assert_int_equal(kt_cap_limit(UINT32_MAX, 100), UINT32_MAX - 1);
	assert_int_equal(kt_cap_limit(UINT32_MAX, 50), UINT32_MAX / 2);
}

KTEST_MAIN(KTEST(limits_of_a_machine), KTEST(limits_of_a_node),
	   KTEST(large_numbers_do_not_overflow))
