/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interval that `ktask bench` prints encloses the true ratio as often as
 * it says, whatever the noise, and is not given where there is none.
 */
#include <math.h>
#include <string.h>

#include "ktest.h"

#include "cli/bench/ratio.c"

#define MAX_PAIRS 400

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
	return ktest_random_below(&random_state, bound);
}

/* Ratios are exact in these tests, or compared with some slack. */
static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9)
		fail_msg("%.12f is not %.12f", a, b);
}

static struct ratio ratio_of_range(unsigned nr)
{
	double ratios[MAX_PAIRS];
	unsigned i;

	/* Not in order; 7 divides no number of pairs used here. */
	for (i = 0; i < nr; i++)
		ratios[i] = 1 + (i * 7 + 3) % nr;
	return ratio_of(ratios, nr);
}

static void one_pair_has_no_interval(void **state)
{
	double one = 1.5;
	struct ratio ratio = ratio_of(&one, 1);

	assert_near(ratio.median, 1.5);
	assert_near(ratio.low, 1.5);
	assert_near(ratio.high, 1.5);
	assert_true(ratio.confidence == 0);
	assert_false(ratio_settled(&ratio, 1));
}

static void five_pairs_have_none_and_six_have_one(void **state)
{
	struct ratio five = ratio_of_range(5), six = ratio_of_range(6);

	assert_true(five.confidence == 0);
	assert_near(five.low, 1);
	assert_near(five.high, 5);
	assert_near(six.confidence, 1 - 2.0 / 64);
	assert_near(six.low, 1);
	assert_near(six.high, 6);
	assert_near(six.median, sqrt(3 * 4));
	assert_int_equal(RATIO_LEAST_PAIRS, 6);
}

/* Known ranks: Le Boudec, table A.1, and any table of the sign test. */
static void the_ranks_are_those_of_the_binomial_table(void **state)
{
	static const struct {
		unsigned nr, low, high;
		double confidence;
	} table[] = {
		{ 8, 1, 8, 0.9921875 },	   { 9, 2, 8, 0.9609375 },
		{ 10, 2, 9, 0.978515625 }, { 12, 3, 10, 0.96142578125 },
		{ 15, 4, 12, 0.9648 },	   { 20, 6, 15, 0.9586 },
		{ 50, 18, 33, 0.9672 },
	};
	unsigned i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct ratio ratio = ratio_of_range(table[i].nr);

		assert_near(ratio.low, table[i].low);
		assert_near(ratio.high, table[i].high);
		assert_true(fabs(ratio.confidence - table[i].confidence) <
			    1e-4);
	}
}

static void ties_have_no_width(void **state)
{
	double ratios[9] = { 2, 2, 2, 2, 2, 2, 2, 2, 2 };
	struct ratio ratio = ratio_of(ratios, 9);

	assert_near(ratio.median, 2);
	assert_near(ratio_width(&ratio), 0);
	assert_true(ratio_settled(&ratio, 0));
	assert_false(ratio_disputed(&ratio));
}

static void outliers_move_nothing(void **state)
{
	double ratios[12] = { 1.8, 1e-9, 1.8, 1.8, 1.9,	 1.8,
			      1.8, 1e9,	 1.8, 1.9, 1.81, 1e9 };
	struct ratio ratio = ratio_of(ratios, 12);

	assert_near(ratio.median, 1.8);
	assert_near(ratio.low, 1.8);
	assert_near(ratio.high, 1.9);
}

static void swapped_sides_give_the_inverse(void **state)
{
	double ratios[MAX_PAIRS], inverse[MAX_PAIRS];
	unsigned i, nr;

	for (nr = 1; nr < 40; nr++) {
		struct ratio one, other;

		for (i = 0; i < nr; i++) {
			ratios[i] = 1 + random_below(1000) / 500.0;
			inverse[i] = 1 / ratios[i];
		}
		one = ratio_of(ratios, nr);
		other = ratio_of(inverse, nr);
		assert_near(one.median * other.median, 1);
		assert_near(one.low * other.high, 1);
		assert_near(one.high * other.low, 1);
	}
}

static void thousands_of_pairs_do_not_underflow(void **state)
{
	enum { NR = 4096 };
	double *ratios = calloc(NR, sizeof(*ratios));
	struct ratio ratio;
	unsigned i;

	assert_non_null(ratios);
	for (i = 0; i < NR; i++)
		ratios[i] = 1 + i;
	ratio = ratio_of(ratios, NR);
	free(ratios);
	assert_in_range(ratio.confidence * 1000, 950, 953);
	/* 1.96 deviations of sqrt(n) / 2 on each side. */
	assert_in_range(ratio.low, 2048 - 65, 2048 - 60);
	assert_in_range(ratio.high, 2048 + 60, 2048 + 66);
}

static void a_side_is_faster_only_where_the_interval_says_so(void **state)
{
	double mixed[7] = { 0.9, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6 };
	double above[7] = { 1.1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6 };
	struct ratio ratio = ratio_of(mixed, 7);

	assert_true(ratio_disputed(&ratio));
	ratio = ratio_of(above, 7);
	assert_false(ratio_disputed(&ratio));
}

/* A pair of runs with true ratio 2 on a machine that is mostly unkind. */
static double noisy_ratio(void)
{
	double ratio = 2 * (1 + (random_below(2001) / 1000.0 - 1) / 10);

	switch (random_below(10)) {
	case 0:
		return ratio * (1 + random_below(50));
	case 1:
		return ratio / (1 + random_below(50));
	default:
		return ratio;
	}
}

static void intervals_enclose_the_truth_as_often_as_they_say(void **state)
{
	double ratios[MAX_PAIRS];
	unsigned trial, i, missed = 0;

	for (trial = 0; trial < 4000; trial++) {
		struct ratio ratio;

		for (i = 0; i < 15; i++)
			ratios[i] = noisy_ratio();
		ratio = ratio_of(ratios, 15);
		missed += ratio.low > 2 || ratio.high < 2;
	}
	/* 3.5 % of 4000 are 140; nine deviations of 12 above that. */
	assert_in_range(missed, 1, 250);
}

/* As bench_rounds.c does: look after each pair, stop when it is narrow. */
static void stopping_when_narrow_costs_little(void **state)
{
	double ratios[MAX_PAIRS], sorted[MAX_PAIRS];
	unsigned trial, nr, missed = 0;

	for (trial = 0; trial < 1000; trial++) {
		struct ratio ratio = { 0 };

		for (nr = 0; nr < 200 && !ratio_settled(&ratio, 0.1);) {
			ratios[nr++] = noisy_ratio();
			memcpy(sorted, ratios, nr * sizeof(*sorted));
			ratio = ratio_of(sorted, nr);
		}
		assert_true(ratio.pairs >= RATIO_SETTLED_PAIRS);
		missed += ratio.low > 2 || ratio.high < 2;
	}
	/* One in sixteen instead of one in twenty; six deviations above that. */
	assert_in_range(missed, 0, 110);
}

static int seed_random(void **state)
{
	random_state = ktest_seed();
	return 0;
}

#define RANDOM_TEST(test) cmocka_unit_test_setup(test, seed_random)

KTEST_MAIN(KTEST(one_pair_has_no_interval),
	   KTEST(five_pairs_have_none_and_six_have_one),
	   KTEST(the_ranks_are_those_of_the_binomial_table),
	   KTEST(ties_have_no_width), KTEST(outliers_move_nothing),
	   RANDOM_TEST(swapped_sides_give_the_inverse),
	   KTEST(thousands_of_pairs_do_not_underflow),
	   KTEST(a_side_is_faster_only_where_the_interval_says_so),
	   RANDOM_TEST(intervals_enclose_the_truth_as_often_as_they_say),
	   RANDOM_TEST(stopping_when_narrow_costs_little))
