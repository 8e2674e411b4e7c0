/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers get fast cores first, then the other cores, then siblings, the
 * caller's own last; never the caller's CPU while there is another.
 */
#include "ktest.h"

#include "core/placement.h"

#define WORDS 2
#define CPUS (WORDS * 64)

static uint16_t core[CPUS];
static uint64_t slow[WORDS];
static struct kt_cores cores;

/* Each CPU a core of its own, until a test says otherwise. */
static int make_cores(void **state)
{
	for (unsigned i = 0; i < CPUS; i++)
		core[i] = (uint16_t)i;
	slow[0] = slow[1] = 0;
	cores = (struct kt_cores){ .nr_words = WORDS, .core = core };
	return 0;
}

static uint64_t cpus_of(uint64_t allowed, int caller,
			enum kt_placement_level level)
{
	uint64_t all[WORDS] = { allowed, 0 };
	uint64_t cpus[WORDS] = { ~0ull, ~0ull };

	kt_placement_cpus(&cores, all, caller, level, cpus);
	assert_int_equal(cpus[1], 0);
	return cpus[0];
}

static void capacity_is(uint64_t allowed, int caller, unsigned fast,
			unsigned whole, unsigned beside)
{
	uint64_t all[WORDS] = { allowed, 0 };
	struct kt_placement_capacity capacity = { { 99, 99, 99 } };

	kt_placement_capacity(&cores, all, caller, &capacity);
	assert_int_equal(capacity.nr[KT_PLACEMENT_FAST], fast);
	assert_int_equal(capacity.nr[KT_PLACEMENT_CORES], whole);
	assert_int_equal(capacity.nr[KT_PLACEMENT_BESIDE], beside);
}

/* 4 cores, siblings 4 apart; the caller on 0. */
static void four_cores(void)
{
	for (uint16_t i = 4; i < 8; i++)
		core[i] = i - 4;
}

static void one_sibling_of_each_other_core(void **state)
{
	four_cores();
	assert_int_equal(cpus_of(0xff, 0, KT_PLACEMENT_FAST), 0x0e);
	assert_int_equal(cpus_of(0xff, 0, KT_PLACEMENT_CORES), 0x0e);
	assert_int_equal(cpus_of(0xff, 0, KT_PLACEMENT_BESIDE), 0xee);
	assert_int_equal(cpus_of(0xff, 0, KT_PLACEMENT_ANY), 0xfe);
	/* The same from the caller's other sibling. */
	assert_int_equal(cpus_of(0xff, 4, KT_PLACEMENT_CORES), 0x0e);
	assert_int_equal(cpus_of(0xff, 4, KT_PLACEMENT_ANY), 0xef);
	/* Nobody knows where the caller is. */
	assert_int_equal(cpus_of(0xff, -1, KT_PLACEMENT_CORES), 0x0f);
	assert_int_equal(cpus_of(0xff, -1, KT_PLACEMENT_ANY), 0xff);
	capacity_is(0xff, 0, 3, 3, 6);
	capacity_is(0xff, -1, 4, 4, 8);
}

static void levels_are_filled_in_turn(void **state)
{
	struct kt_placement_capacity capacity = { { 2, 3, 6 } };
	static const enum kt_placement_level expected[] = {
		KT_PLACEMENT_FAST,   KT_PLACEMENT_FAST,	  KT_PLACEMENT_CORES,
		KT_PLACEMENT_BESIDE, KT_PLACEMENT_BESIDE, KT_PLACEMENT_BESIDE,
		KT_PLACEMENT_ANY,    KT_PLACEMENT_ANY,
	};

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(expected); i++)
		assert_int_equal(kt_placement_level(&capacity, i), expected[i]);
	assert_int_equal(kt_placement_level(&capacity, UINT32_MAX),
			 KT_PLACEMENT_ANY);
}

/* The lowest sibling of a core may be forbidden, or offline. */
static void any_allowed_sibling_counts_as_its_core(void **state)
{
	four_cores();
	assert_int_equal(cpus_of(0xf0, 4, KT_PLACEMENT_CORES), 0xe0);
	assert_int_equal(cpus_of(0xd3, 0, KT_PLACEMENT_CORES), 0xc2);
	capacity_is(0xd3, 0, 3, 3, 3);
	/* Three threads a core; of 0, 5 and 9 the first is not there. */
	core[5] = core[9] = 0;
	core[4] = 4;
	assert_int_equal(cpus_of(0x220, 1, KT_PLACEMENT_CORES), 0x20);
	capacity_is(0x220, 1, 1, 1, 2);
}

static void fast_cores_before_slow_ones(void **state)
{
	four_cores();
	/* Cores 2 and 3 are slow, one of them without a sibling. */
	slow[0] = 0x4c;
	cores.slow = slow;
	assert_int_equal(cpus_of(0x7f, 0, KT_PLACEMENT_FAST), 0x02);
	assert_int_equal(cpus_of(0x7f, 0, KT_PLACEMENT_CORES), 0x0e);
	capacity_is(0x7f, 0, 1, 3, 5);
	cores.slow = NULL;
	assert_int_equal(cpus_of(0x7f, 0, KT_PLACEMENT_FAST), 0x0e);
}

static void a_slow_sibling_is_a_sibling(void **state)
{
	four_cores();
	cores.slow = slow;
	slow[0] = 0xcc;
	/* A whole slow core is better than half of a fast one. */
	assert_int_equal(cpus_of(0xff, 0, KT_PLACEMENT_CORES), 0x0e);
	capacity_is(0xff, 0, 1, 3, 6);
}

/* Where nothing is to choose nothing is counted, and only the caller's CPU is
 * left out. */
static void machines_without_siblings(void **state)
{
	cores.core = NULL;
	assert_false(kt_placement_matters(&cores));
	capacity_is(0xff, 0, 0, 0, 0);
	for (unsigned level = 0; level <= KT_PLACEMENT_ANY; level++)
		assert_int_equal(cpus_of(0xff, 3, level), 0xf7);
}

static void never_an_empty_set(void **state)
{
	four_cores();
	for (unsigned level = 0; level <= KT_PLACEMENT_ANY; level++) {
		assert_int_equal(cpus_of(0x01, 0, level), 0x01);
		/* Only the caller's sibling is left. */
		assert_int_equal(cpus_of(0x11, 0, level), 0x10);
		assert_int_equal(cpus_of(0, 0, level), 0);
	}
	cores.slow = slow;
	slow[0] = 0xff;
	assert_int_equal(cpus_of(0xff, 0, KT_PLACEMENT_FAST), 0xfe);
}

static void callers_beyond_the_set_do_no_harm(void **state)
{
	four_cores();
	assert_int_equal(cpus_of(0xff, CPUS, KT_PLACEMENT_CORES), 0x0f);
	assert_int_equal(cpus_of(0xff, 1 << 20, KT_PLACEMENT_ANY), 0xff);
	assert_int_equal(cpus_of(0xff, INT32_MIN, KT_PLACEMENT_ANY), 0xff);
}

/* Any machine: levels only grow, and hold as many CPUs as were counted. */
static void random_machines(void **state)
{
	uint64_t random = ktest_seed();

	for (int round = 0; round < 2000; round++) {
		uint64_t all[WORDS], cpus[WORDS], wider[WORDS];
		struct kt_placement_capacity capacity;
		int caller = (int)ktest_random_below(&random, CPUS + 8) - 4;
		unsigned nr = 1 + (unsigned)ktest_random_below(&random, CPUS);

		for (unsigned i = 0; i < CPUS; i++) {
			unsigned other =
				(unsigned)ktest_random_below(&random, i + 1);

			core[i] = (uint16_t)(i < nr ? i : core[other]);
		}
		cores.slow = ktest_random_below(&random, 2) ? slow : NULL;
		for (unsigned w = 0; w < WORDS; w++) {
			all[w] = ktest_random(&random) & ktest_random(&random);
			slow[w] = ktest_random(&random);
		}
		kt_placement_capacity(&cores, all, caller, &capacity);
		for (unsigned level = 0; level < KT_PLACEMENT_ANY; level++) {
			unsigned count = 0;

			kt_placement_cpus(&cores, all, caller, level, cpus);
			kt_placement_cpus(&cores, all, caller, level + 1,
					  wider);
			for (unsigned w = 0; w < WORDS; w++) {
				count +=
					(unsigned)__builtin_popcountll(cpus[w]);
				assert_int_equal(cpus[w] & ~all[w], 0);
				if (capacity.nr[level])
					assert_int_equal(cpus[w] & ~wider[w],
							 0);
			}
			if (capacity.nr[level])
				assert_int_equal(count, capacity.nr[level]);
		}
	}
}

#define T(name) cmocka_unit_test_setup(name, make_cores)

KTEST_MAIN(T(one_sibling_of_each_other_core), T(levels_are_filled_in_turn),
	   T(any_allowed_sibling_counts_as_its_core),
	   T(fast_cores_before_slow_ones), T(a_slow_sibling_is_a_sibling),
	   T(machines_without_siblings), T(never_an_empty_set),
	   T(callers_beyond_the_set_do_no_harm), T(random_machines))
