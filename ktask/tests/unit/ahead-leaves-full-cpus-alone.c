/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A program whose threads keep all CPUs busy is told from one that leaves a CPU to
 * helpers, whatever time passes between two readings. */
#include "ktest.h"

#include "ahead/cpu_saturation.h"

#define MS ((uint64_t)1000000)
/* The CPU time of a thread on another CPU is known up to its last tick. */
#define TICK (10 * MS)

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
		assert_true(
			run_for(&state, &now, &used, 25 * MS, 100, cpus[i]));
		assert_true(run_for(&state, &now, &used, 90 * MS, 88, cpus[i]));
		assert_false(
			run_for(&state, &now, &used, 30 * MS, 70, cpus[i]));
	}
}

static void a_cpu_that_is_left_is_noticed(void **unused)
{
	struct cpu_saturation state = { 0 };
	uint64_t now = MS, used = 0;

	run_for(&state, &now, &used, MS, 50, 2);
	for (int i = 0; i < 100; i++)
		assert_false(run_for(&state, &now, &used, 25 * MS, 50, 2));
}

/* One thread of a program on two CPUs, whatever was known of it when. */
static void ticks_do_not_matter(void **unused)
{
	struct cpu_saturation state = { 0 };

	for (uint64_t now = MS; now < 1000 * MS; now += MS / 4)
		assert_false(
			cpu_saturation_note(&state, now, now / TICK * TICK, 2));
}

/* What happened before counts until two readings can be compared. */
static void short_times_change_nothing(void **unused)
{
	struct cpu_saturation state = { 0 };
	uint64_t now = MS, used = 0;

	run_for(&state, &now, &used, MS, 100, 2);
	assert_true(run_for(&state, &now, &used, 30 * MS, 100, 2));
	for (int i = 0; i < 24; i++)
		assert_true(run_for(&state, &now, &used, MS, 0, 2));
	assert_false(run_for(&state, &now, &used, MS, 0, 2));
}

/* A helper's time may be known only later. */
static void time_that_goes_back_is_none(void **unused)
{
	struct cpu_saturation state = { 0 };

	assert_false(cpu_saturation_note(&state, MS, 50 * MS, 2));
	assert_false(cpu_saturation_note(&state, 90 * MS, 40 * MS, 2));
	assert_true(cpu_saturation_note(&state, 190 * MS, 240 * MS, 2));
}

KTEST_MAIN(KTEST(all_cpus_are_noticed), KTEST(a_cpu_that_is_left_is_noticed),
	   KTEST(ticks_do_not_matter), KTEST(short_times_change_nothing),
	   KTEST(time_that_goes_back_is_none))
