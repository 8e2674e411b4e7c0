/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A program whose threads keep all CPUs busy is told from one that leaves a CPU to
 * helpers, whatever time passes between two readings. */
#include "ktest.h"

#include "ahead/cpu_saturation.h"

#define MS ((uint64_t)1000000)

/* @percent of all CPUs are used from now on, for @ns. */
static bool run_for(struct cpu_saturation *saturation, uint64_t *now,
		    uint64_t *used, uint64_t ns, unsigned percent,
		    unsigned nr_cpus)
{
	*now += ns;
	*used += ns * nr_cpus * percent / 100;
	return cpu_saturation_note(saturation, *now, *used, nr_cpus);
}

static void all_cpus_are_noticed(void **unused)
{
	static const unsigned cpus[] = { 2, 3, 16, 1024 };

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(cpus); i++) {
		struct cpu_saturation state = { 0 };
		uint64_t now = 5, used = 77 * MS;

		/* Of the time before the first reading nothing is known. */
		assert_false(run_for(&state, &now, &used, 0, 100, cpus[i]));
		assert_true(run_for(&state, &now, &used, MS, 100, cpus[i]));
		assert_true(run_for(&state, &now, &used, 90 * MS, 88, cpus[i]));
		assert_false(run_for(&state, &now, &used, 3 * MS, 70, cpus[i]));
	}
}

static void a_cpu_that_is_left_is_noticed(void **unused)
{
	struct cpu_saturation state = { 0 };
	uint64_t now = MS, used = 0;

	run_for(&state, &now, &used, MS, 50, 2);
	for (int i = 0; i < 100; i++)
		assert_false(run_for(&state, &now, &used, 2 * MS, 50, 2));
}

/* What happened before counts until a millisecond has passed. */
static void short_times_change_nothing(void **unused)
{
	struct cpu_saturation state = { 0 };
	uint64_t now = MS, used = 0;

	run_for(&state, &now, &used, MS, 100, 2);
	assert_true(run_for(&state, &now, &used, 2 * MS, 100, 2));
	for (int i = 0; i < 9; i++)
		assert_true(run_for(&state, &now, &used, MS / 10, 0, 2));
	assert_false(run_for(&state, &now, &used, MS / 10, 0, 2));
}

/* A helper's time may be known only later. */
static void time_that_goes_back_is_none(void **unused)
{
	struct cpu_saturation state = { 0 };

	assert_false(cpu_saturation_note(&state, MS, 50 * MS, 2));
	assert_false(cpu_saturation_note(&state, 9 * MS, 40 * MS, 2));
	assert_true(cpu_saturation_note(&state, 19 * MS, 60 * MS, 2));
}

KTEST_MAIN(KTEST(all_cpus_are_noticed), KTEST(a_cpu_that_is_left_is_noticed),
	   KTEST(short_times_change_nothing),
	   KTEST(time_that_goes_back_is_none))
