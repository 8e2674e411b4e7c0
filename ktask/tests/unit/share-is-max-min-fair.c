/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers are dealt max-min fairly: nobody gets more than wanted, nothing is
 * left while somebody wants more, and what does not divide goes round.
 */
#include "ktest.h"

#include "core/share.h"

#define MAX_JOBS 40

static void deal_shares(unsigned limit, const uint32_t *wanted, unsigned nr,
			uint64_t turn, unsigned *got)
{
	for (unsigned i = 0; i < nr; i++)
		got[i] = kt_share(limit, wanted, nr, i, turn);
}

static void one_job_gets_what_there_is(void **state)
{
	uint32_t wanted = 7;

	assert_int_equal(kt_share(76, &wanted, 1, 0, 0), 7);
	assert_int_equal(kt_share(3, &wanted, 1, 0, 5), 3);
	assert_int_equal(kt_share(0, &wanted, 1, 0, 5), 0);
}

static void who_wants_little_gets_it(void **state)
{
	const uint32_t wanted[] = { 2, 100, 100 };

	assert_int_equal(kt_share(42, wanted, 3, 0, 0), 2);
	assert_int_equal(kt_share(42, wanted, 3, 1, 0), 20);
	assert_int_equal(kt_share(42, wanted, 3, 2, 0), 20);
}

static void a_boundless_job_takes_no_more_than_its_share(void **state)
{
	const uint32_t wanted[] = { UINT32_MAX, 5, UINT32_MAX };

	assert_int_equal(kt_share(15, wanted, 3, 1, 0), 5);
	assert_int_equal(kt_share(15, wanted, 3, 0, 0), 5);
}

static void every_job_has_its_turn(void **state)
{
	uint32_t wanted[MAX_JOBS];
	unsigned got[MAX_JOBS], sum[MAX_JOBS] = { 0 };

	for (unsigned i = 0; i < MAX_JOBS; i++)
		wanted[i] = 9;
	for (uint64_t turn = 0; turn < MAX_JOBS; turn++) {
		deal_shares(3, wanted, MAX_JOBS, turn, got);
		for (unsigned i = 0; i < MAX_JOBS; i++)
			sum[i] += got[i];
	}
	for (unsigned i = 0; i < MAX_JOBS; i++)
		assert_int_equal(sum[i], 3);
}

static void check_fair(unsigned limit, const uint32_t *wanted, unsigned nr,
		       const unsigned *got)
{
	uint64_t dealt = 0, all = 0;
	unsigned least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < nr; i++) {
		assert_true(got[i] <= wanted[i]);
		dealt += got[i];
		all += wanted[i];
		most = KT_MAX(most, got[i]);
		if (got[i] < wanted[i])
			least = KT_MIN(least, got[i]);
	}
	assert_int_equal(dealt, KT_MIN(all, limit));
	/* Who lacks something has at most one less than anybody else. */
	if (least != UINT32_MAX)
		assert_true(least + 1 >= most);
}

static void the_last_turns_are_like_any_others(void **state)
{
	uint32_t wanted[7];
	unsigned got[7];

	for (unsigned i = 0; i < 7; i++)
		wanted[i] = 9;
	for (uint64_t before = 0; before < 20; before++) {
		deal_shares(3, wanted, 7, UINT64_MAX - before, got);
		check_fair(3, wanted, 7, got);
	}
}

static void any_jobs_share_fairly(void **state)
{
	uint64_t random = ktest_seed();

	for (int round = 0; round < 20000; round++) {
		unsigned nr =
			1 + (unsigned)ktest_random_below(&random, MAX_JOBS);
		unsigned limit = (unsigned)ktest_random_below(&random, 300);
		uint32_t wanted[MAX_JOBS];
		unsigned got[MAX_JOBS];

		for (unsigned i = 0; i < nr; i++)
			wanted[i] = (uint32_t)ktest_random_below(&random, 64);
		deal_shares(limit, wanted, nr, ktest_random(&random), got);
		check_fair(limit, wanted, nr, got);
	}
}

KTEST_MAIN(KTEST(one_job_gets_what_there_is), KTEST(who_wants_little_gets_it),
	   KTEST(a_boundless_job_takes_no_more_than_its_share),
	   KTEST(every_job_has_its_turn),
	   KTEST(the_last_turns_are_like_any_others),
	   KTEST(any_jobs_share_fairly))
