/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A long job of many threads begins with one and has all of them after a few chunks of
 * its caller, if all pay; moments in which the caller gets no CPU do not end that with
 * few threads.  Jobs that are short, of few threads or of few chunks have no ramp.
 *
 * Simulated: no time passes.
 */
#include "ktest.h"

#include "core/tune.h"

#define MAX 64
#define CHUNK 1
#define CHUNK_NS 100000
/* A second of all threads. */
#define UNITS (MAX * 10000ull)
#define CHUNKS 100 /* of the caller, 10 ms */

struct ramp {
	struct kt_tune tune;
	uint64_t now_ns, own;
};

static bool begin_ramp(struct ramp *ramp, unsigned max, uint64_t units,
		       uint64_t chunk)
{
	*ramp = (struct ramp){ .now_ns = 1000 };
	kt_tune_begin(&ramp->tune, max, units, ramp->now_ns);
	kt_tune_chunk(&ramp->tune, chunk);
	return kt_tune_ramp(&ramp->tune);
}

/* Return: threads that the job asks for. */
static unsigned end_chunk(struct ramp *ramp, uint64_t ns)
{
	ramp->now_ns += ns;
	ramp->own += CHUNK;
	return kt_tune_ramp_step(&ramp->tune, ramp->now_ns, ramp->own,
				 ramp->own * ramp->tune.threads);
}

static void all_are_there_soon_if_all_pay(void **state)
{
	struct ramp ramp;
	unsigned chunks = 0;

	assert_true(begin_ramp(&ramp, MAX, UNITS, CHUNK));
	assert_int_equal(ramp.tune.threads, 1);
	for (; kt_tune_ramps(&ramp.tune); chunks++)
		end_chunk(&ramp, CHUNK_NS);
	assert_int_equal(ramp.tune.threads, MAX);
	assert_in_range(chunks, 1, 8);
}

/* Of five chunks one takes ten times as long, of a hundred jobs hardly one suffers. */
static void bad_moments_do_not_end_it(void **state)
{
	uint64_t random = ktest_seed();
	unsigned few = 0;

	for (unsigned job = 0; job < 1000; job++) {
		struct ramp ramp;

		assert_true(begin_ramp(&ramp, MAX, UNITS, CHUNK));
		for (unsigned i = 0; i < CHUNKS && kt_tune_ramps(&ramp.tune);
		     i++)
			end_chunk(&ramp, ktest_random_below(&random, 5)
						 ? CHUNK_NS
						 : 10 * CHUNK_NS);
		assert_false(kt_tune_ramps(&ramp.tune));
		few += ramp.tune.threads < MAX;
	}
	print_message("# %u of 1000 jobs with fewer than all\n", few);
	assert_in_range(few, 0, 20);
}

/* Half of its rate is left with four threads: two are tried, too, and none stays. */
static void what_does_not_pay_is_given_up(void **state)
{
	struct ramp ramp;

	assert_true(begin_ramp(&ramp, MAX, UNITS, CHUNK));
	for (unsigned i = 0; i < CHUNKS && kt_tune_ramps(&ramp.tune); i++) {
		unsigned threads = ramp.tune.threads;

		assert_in_range(threads, 1, 4);
		end_chunk(&ramp,
			  threads > 1 ? 2ull * threads * CHUNK_NS : CHUNK_NS);
	}
	assert_int_equal(ramp.tune.threads, 1);
}

static void clocks_that_run_backwards_do_not_stop_it(void **state)
{
	struct ramp ramp;

	assert_true(begin_ramp(&ramp, MAX, UNITS, CHUNK));
	for (unsigned i = 0; i < CHUNKS && kt_tune_ramps(&ramp.tune); i++) {
		if (i % 4 == 1)
			ramp.now_ns -= 5000;
		end_chunk(&ramp, i % 4 == 1 ? 0 : CHUNK_NS);
	}
	assert_int_equal(ramp.tune.threads, MAX);
}

/* Others hold the rest: what can be had is had at once, and all are asked for. */
static void a_limit_ends_it(void **state)
{
	struct ramp ramp;

	assert_true(begin_ramp(&ramp, MAX, UNITS, CHUNK));
	while (ramp.tune.threads < 16)
		end_chunk(&ramp, CHUNK_NS);
	kt_tune_limit(&ramp.tune, 7, false);
	assert_false(kt_tune_ramps(&ramp.tune));
	assert_int_equal(ramp.tune.threads, 7);
	assert_int_equal(kt_tune_step(&ramp.tune, ramp.now_ns, 100), MAX);
}

static void short_jobs_have_all_threads(void **state)
{
	struct ramp ramp;

	assert_false(begin_ramp(&ramp, 4, UNITS, CHUNK));
	assert_false(begin_ramp(&ramp, MAX, UNITS, 0));
	assert_false(begin_ramp(&ramp, MAX, MAX * 100, CHUNK));
	assert_int_equal(ramp.tune.threads, MAX);
	/* 5 ms of all threads, as the first chunk tells. */
	assert_true(begin_ramp(&ramp, MAX, UNITS, CHUNK));
	assert_int_equal(end_chunk(&ramp, 500), MAX);
}

/* Also if it is all of them. */
static void a_count_that_was_measured_is_not_doubted(void **state)
{
	static const unsigned counts[] = { 1, 12, MAX };
	struct ramp ramp;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(counts); i++) {
		begin_ramp(&ramp, 1, UNITS, CHUNK);
		kt_tune_begin(&ramp.tune, MAX, UNITS, ramp.now_ns);
		kt_tune_chunk(&ramp.tune, CHUNK);
		kt_tune_known(&ramp.tune, counts[i]);
		assert_false(kt_tune_ramp(&ramp.tune));
		assert_int_equal(ramp.tune.threads, counts[i]);
	}
	assert_true(begin_ramp(&ramp, MAX, UNITS, CHUNK));
}

KTEST_MAIN(KTEST(all_are_there_soon_if_all_pay),
	   KTEST(bad_moments_do_not_end_it),
	   KTEST(what_does_not_pay_is_given_up),
	   KTEST(clocks_that_run_backwards_do_not_stop_it),
	   KTEST(a_limit_ends_it), KTEST(short_jobs_have_all_threads),
	   KTEST(a_count_that_was_measured_is_not_doubted))
