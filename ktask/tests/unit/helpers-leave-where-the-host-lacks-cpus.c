/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A virtual machine whose CPUs share one of the host: after some chunks no job has
 * helpers, for a time that grows each time that this is found again.  Where each has a
 * CPU, neither expensive chunks nor a caller that waits keep helpers away for long.
 */
#include "ktest.h"
#include "kernel/engine/steal.c"

#define MS 1000000ull
#define CHUNK_NS MS
#define TURN_NS (3 * MS)
#define JOB_CHUNKS 200

/* What a job runs on, chunk by chunk of its caller. */
struct machine {
	uint64_t now_ns;
	bool shared; /* the helper runs in turns with the caller */
	unsigned
		slow_every; /* a chunk of the caller takes five times as long */
	bool sleeps; /* and it sleeps in these */
	uint64_t turn_left_ns;
};

struct outcome {
	unsigned found, helped, alone; /* chunks of the caller */
	uint64_t ns;
};

/* The caller does one chunk; returns units that the helper did meanwhile. */
static uint64_t do_chunk(struct machine *m, unsigned nr, bool helped)
{
	bool slow = m->slow_every && nr % m->slow_every == m->slow_every - 1;
	uint64_t work_ns = slow ? 5 * CHUNK_NS : CHUNK_NS, helper_ns = 0;

	if (!helped || !m->shared) {
		m->now_ns += work_ns;
		return helped ? work_ns : 0;
	}
	while (work_ns >= m->turn_left_ns) {
		work_ns -= m->turn_left_ns;
		m->now_ns += m->turn_left_ns + TURN_NS;
		helper_ns += TURN_NS;
		m->turn_left_ns = TURN_NS;
	}
	m->turn_left_ns -= work_ns;
	m->now_ns += work_ns;
	return helper_ns;
}

/* Until JOB_CHUNKS chunks of work are done; a chunk has as many units as it takes ns
 * if it is not slow. */
static struct outcome do_job(struct machine *m)
{
	struct outcome outcome = { 0 };
	struct steal_sample sample = { 0 };
	struct steal_watch watch;
	uint64_t start_ns = m->now_ns;

	steal_begin(&watch, m->now_ns);
	m->turn_left_ns = TURN_NS;
	for (unsigned nr = 0; sample.units < JOB_CHUNKS * CHUNK_NS; nr++) {
		bool helped = steal_allows(&watch), found;

		sample.units += do_chunk(m, nr, helped) + CHUNK_NS;
		sample.own_units += CHUNK_NS;
		sample.now_ns = m->now_ns;
		sample.helped = helped;
		sample.switches += m->sleeps && m->slow_every &&
				   nr % m->slow_every == m->slow_every - 1;
		steal_step(&watch, &sample, &found);
		outcome.found += found;
		outcome.helped += helped;
		outcome.alone += !helped;
	}
	outcome.ns = m->now_ns - start_ns;
	return outcome;
}

/* Long after all that was found before. */
static struct machine new_machine(void)
{
	static uint64_t now_ns;

	now_ns += 1ull << 50;
	return (struct machine){ .now_ns = now_ns };
}

static void turns_are_found(void **state)
{
	struct machine m = new_machine();
	struct outcome outcome;

	m.shared = true;
	outcome = do_job(&m);
	assert_int_equal(outcome.found, 1);
	assert_true(outcome.helped <= 10);
}

static void found_by_one_job_serves_all(void **state)
{
	struct machine m = new_machine();

	m.shared = true;
	do_job(&m);
	for (unsigned i = 0; i < 2; i++) {
		struct outcome outcome = do_job(&m);

		assert_int_equal(outcome.found, 0);
		assert_int_equal(outcome.helped, 0);
	}
}

/* From when it is found the next jobs are watched only at 1, 3, 7, ... 64 s. */
static void time_without_helpers_grows(void **state)
{
	struct machine m = new_machine();
	uint64_t start_ns = m.now_ns;
	unsigned found = 0;

	m.shared = true;
	while (m.now_ns - start_ns < 600000 * MS)
		found += do_job(&m).found;
	assert_in_range(found, 10, 15);
}

static void helpers_come_back(void **state)
{
	struct machine m = new_machine();
	struct outcome outcome;

	m.shared = true;
	do_job(&m);
	m.shared = false;
	m.now_ns += 1000 * MS;
	outcome = do_job(&m);
	assert_int_equal(outcome.alone, 0);
}

/* Also in the middle of a long job. */
static void long_job_gets_helpers_back(void **state)
{
	struct machine m = new_machine();
	struct outcome outcome = { 0 };

	m.shared = true;
	do_job(&m);
	m.shared = false;
	while (!outcome.helped)
		outcome = do_job(&m);
	assert_true(outcome.alone < JOB_CHUNKS);
	assert_int_equal(do_job(&m).alone, 0);
}

static void expensive_chunks_cost_little(void **state)
{
	struct machine m = new_machine();
	unsigned alone = 0, helped = 0;

	m.slow_every = 10;
	for (unsigned i = 0; i < 100; i++) {
		struct outcome outcome = do_job(&m);

		assert_int_equal(outcome.found, 0);
		alone += outcome.alone;
		helped += outcome.helped;
	}
	assert_true(alone * 20 < helped);
}

static void callers_that_sleep_are_not_stopped(void **state)
{
	struct machine m = new_machine();

	m.slow_every = 10;
	m.sleeps = true;
	assert_int_equal(do_job(&m).alone, 0);
}

static void clocks_that_go_back_do_no_harm(void **state)
{
	struct machine m = new_machine();
	struct steal_watch watch;

	steal_begin(&watch, m.now_ns);
	for (unsigned i = 1; i < 1000; i++) {
		struct steal_sample sample = {
			.now_ns = m.now_ns + (i % 7) * MS - i * (MS / 10),
			.units = 2 * i,
			.own_units = i,
			.helped = true,
		};
		bool found;

		steal_step(&watch, &sample, &found);
	}
	assert_true(watch.cost >= 1);
}

KTEST_MAIN(KTEST(turns_are_found), KTEST(found_by_one_job_serves_all),
	   KTEST(time_without_helpers_grows), KTEST(helpers_come_back),
	   KTEST(long_job_gets_helpers_back),
	   KTEST(expensive_chunks_cost_little),
	   KTEST(callers_that_sleep_are_not_stopped),
	   KTEST(clocks_that_go_back_do_no_harm))
