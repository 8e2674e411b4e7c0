/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job that fails at any place, with any code, by one chunk or by several at
 * once: the code comes back unchanged, undo covers exactly what was done, and
 * the result says where it failed.
 */
#include "support/work.h"

#define MANY_CPUS 10
#include "support/many_cpus.h"

#define NR_UNITS 96
#define NR_RANDOM (KTEST_TSAN || KTEST_ASAN ? 300 : 3000)

struct trap {
	uint8_t springs[NR_UNITS]; /* the chunk with this unit fails */
	int code; /* of all of them */
	bool tells; /* by ktask_fail_at() */
	unsigned burn_us;
};

/* Fails at its first trap, having done nothing. */
static int spring_trap(struct work *work, size_t from, size_t to)
{
	struct trap *trap = work->arg;

	burn_us(trap->burn_us);
	for (size_t i = from; i < to; i++) {
		if (!trap->springs[i])
			continue;
		if (trap->tells)
			ktask_fail_at(WORK_BASE + i);
		return trap->code;
	}
	return 0;
}

static size_t find_lowest(const struct trap *trap)
{
	size_t unit = 0;

	while (!trap->springs[unit])
		unit++;
	return unit;
}

static void check_result(const struct ktask_result *result,
			 const struct trap *trap, bool exact)
{
	size_t unit = (size_t)((char *)result->fail_pos - WORK_BASE);

	assert_int_equal(result->error, trap->code);
	assert_int_equal(result->fail_error, trap->code);
	assert_int_equal(result->fail_range, 0);
	assert_int_equal(result->fail_offset, unit);
	assert_true(unit < NR_UNITS);
	if (trap->tells)
		assert_true(trap->springs[unit]);
	if (trap->tells && exact)
		assert_int_equal(unit, find_lowest(trap));
}

static void fails_rightly(struct trap *trap, size_t min_chunk,
			  unsigned max_threads, bool exact)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = spring_trap, .arg = trap };
	struct ktask_ctl ctl = work_ctl(&work, min_chunk);
	size_t nr_done;

	work_begin(&work, NR_UNITS);
	ktask_ctl_set_max_threads(&ctl, max_threads);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run(WORK_BASE, NR_UNITS, &ctl), trap->code);
	assert_true(work_undone_exactly(&work, &nr_done));
	assert_int_equal(result.units, nr_done);
	assert_true(nr_done < NR_UNITS);
	check_result(&result, trap, exact);
	work_end(&work);
}

static void each_chunk_fails_once(void **state)
{
	static const int codes[] = { -EIO,	1,	 INT32_MIN,
				     INT32_MAX, -EINVAL, -ECANCELED };

	for (size_t unit = 0; unit < NR_UNITS; unit++) {
		for (unsigned threads = 0; threads < 4; threads++) {
			struct trap trap = {
				.code = codes[unit % KTEST_ARRAY_SIZE(codes)],
				.tells = unit % 2,
				.burn_us = threads,
			};

			trap.springs[unit] = 1;
			fails_rightly(&trap, 1 + unit % 3, threads, true);
		}
	}
}

static void several_chunks_fail(void **state)
{
	uint64_t seed = ktest_seed();

	for (int i = 0; i < NR_RANDOM; i++) {
		struct trap trap = { .code = -1 - i, .tells = i % 2 };
		uint64_t nr = 1 + ktest_random_below(&seed, 12);

		trap.burn_us = (unsigned)ktest_random_below(&seed, 20);
		while (nr--)
			trap.springs[ktest_random_below(&seed, NR_UNITS)] = 1;
		fails_rightly(&trap, 1 + ktest_random_below(&seed, 4), 0,
			      false);
	}
}

/* All threads are in a chunk when the first one fails. */
static int fail_together(struct work *work, size_t from, size_t to)
{
	ktask_fail_at(WORK_BASE + from);
	return work_is_helper(work) ? -EIO : -ENOSPC;
}

static void caller_and_helper_fail_together(void **state)
{
	need_sure_helper();
	for (int i = 0; i < 100; i++) {
		struct work work = { .also = fail_together, .meet = true };
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_ctl ctl = work_ctl(&work, 1);
		int error;

		work_begin(&work, NR_UNITS);
		ktask_ctl_set_max_threads(&ctl, 2);
		ktask_ctl_set_result(&ctl, &result);
		error = ktask_run(WORK_BASE, NR_UNITS, &ctl);
		assert_true(error == -EIO || error == -ENOSPC);
		assert_int_equal(result.error, error);
		assert_ptr_equal(result.fail_pos, WORK_BASE);
		assert_true(result.fail_error == -EIO ||
			    result.fail_error == -ENOSPC);
		assert_int_equal(result.units, 0);
		assert_true(work_undone_exactly(&work, NULL));
		work_end(&work);
	}
}

static void ranges_fail_rightly(size_t nr_nodes, size_t unit, uint64_t *seed)
{
	struct trap trap = { .code = 7, .tells = true };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = spring_trap, .arg = &trap };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_node nodes[12];
	size_t each = NR_UNITS / nr_nodes;

	trap.springs[unit] = 1;
	trap.burn_us = (unsigned)ktest_random_below(seed, 10);
	for (size_t i = 0; i < nr_nodes; i++)
		nodes[i] = (struct ktask_node){ WORK_BASE + i * each, each,
						(int)(i % 3) - 1 };
	work_begin(&work, NR_UNITS);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run_numa(nodes, nr_nodes, &ctl), 7);
	assert_true(work_undone_exactly(&work, NULL));
	assert_int_equal(result.fail_range, unit / each);
	assert_int_equal(result.fail_offset, unit % each);
	assert_ptr_equal(result.fail_pos, WORK_BASE + unit);
	work_end(&work);
}

static void ranges_of_nodes_fail(void **state)
{
	static const size_t counts[] = { 1, 2, 3, 4, 6, 8, 12 };
	uint64_t seed = ktest_seed() + 1;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(counts); i++)
		for (size_t unit = 0; unit < NR_UNITS; unit++)
			ranges_fail_rightly(counts[i], unit, &seed);
}

/* Outside of a chunk, in a nested job, in a chunk that succeeds after all. */
static int mislead_job(struct work *work, size_t from, size_t to)
{
	ktask_fail_at(WORK_BASE + from);
	if (from <= NR_UNITS / 2 && NR_UNITS / 2 < to) {
		ktask_fail_at(NULL);
		return -EIO;
	}
	return 0;
}

static void fail_at_counts_for_its_chunk_only(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = mislead_job };
	struct ktask_ctl ctl = work_ctl(&work, 1);

	ktask_fail_at(WORK_BASE);
	work_begin(&work, NR_UNITS);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run(WORK_BASE, NR_UNITS, &ctl), -EIO);
	assert_true((char *)result.fail_pos > WORK_BASE);
	assert_true(result.fail_offset <= NR_UNITS / 2);
	assert_true(work_undone_exactly(&work, NULL));
	ktask_fail_at(WORK_BASE);
	work_end(&work);
}

KTEST_MAIN(KTEST(each_chunk_fails_once), KTEST(several_chunks_fail),
	   KTEST(caller_and_helper_fail_together), KTEST(ranges_of_nodes_fail),
	   KTEST(fail_at_counts_for_its_chunk_only))
