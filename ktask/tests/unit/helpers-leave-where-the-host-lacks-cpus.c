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
/* A caller alone is measured for as long, once in a job that is not suspected. */
#define PERIOD_CHUNKS 6

/* What a job runs on, chunk by chunk of its caller. */
struct machine {
	uint64_t now_ns;
	bool shared; /* the helper runs in turns with the caller */
	unsigned
		slow_every; /* a chunk of the caller takes five times as long */
	bool sleeps; /* and it sleeps in these */
	unsigned chunks; /* of a job; 0: JOB_CHUNKS */
	unsigned slow_at; /* the same, once in each job, if set */
	unsigned
		helper_percent; /* the helper's speed against the caller's; 0: 100 */
	unsigned
		spin_percent; /* of each turn, where the helper runs in turns */
	/* What a chunk costs from when helpers first left, and while they are gone. */
	unsigned then_percent, alone_percent;
	bool steal_clock; /* the hypervisor has one */
	bool tells_stopped; /* and says which CPU it has stopped */
	unsigned cpu; /* of the caller */
	uint64_t stolen_ns; /* from this one */
	uint64_t turn_left_ns, helper_ns;
	bool left;
};

struct outcome {
	unsigned found, helped, alone; /* chunks of the caller */
	uint64_t ns;
};

static bool is_slow(const struct machine *m, unsigned nr)
{
	return (m->slow_every && nr % m->slow_every == m->slow_every - 1) ||
	       (m->slow_at && nr == m->slow_at);
}

/* What a chunk costs now, of the caller and of the helper. */
static uint64_t chunk_ns(const struct machine *m, bool helped)
{
	uint64_t ns = CHUNK_NS;

	if (m->left && m->then_percent)
		ns = ns * m->then_percent / 100;
	if (!helped && m->alone_percent)
		ns = ns * m->alone_percent / 100;
	return ns;
}

/* The helper's time; returns units of the chunks that it has ended. */
static uint64_t run_helper(struct machine *m, uint64_t ns, uint64_t each_ns)
{
	uint64_t units = 0;

	m->helper_ns += ns * (m->helper_percent ?: 100) / 100;
	for (; m->helper_ns >= each_ns; m->helper_ns -= each_ns)
		units += CHUNK_NS;
	return units;
}

/* In turns with the helper, each of which spins for a part of its own. */
static uint64_t take_turns(struct machine *m, uint64_t work_ns)
{
	uint64_t used_ns = TURN_NS * (100 - m->spin_percent) / 100;
	uint64_t helper_ns = 0;

	while (work_ns >= m->turn_left_ns) {
		work_ns -= m->turn_left_ns;
		m->now_ns += m->turn_left_ns * TURN_NS / used_ns + TURN_NS;
		m->stolen_ns += TURN_NS;
		helper_ns += used_ns;
		m->turn_left_ns = used_ns;
	}
	m->turn_left_ns -= work_ns;
	m->now_ns += work_ns * TURN_NS / used_ns;
	return helper_ns;
}

/* The caller does one chunk; returns units that the helper did meanwhile. */
static uint64_t do_chunk(struct machine *m, unsigned nr, bool helped)
{
	uint64_t each_ns = chunk_ns(m, helped);
	uint64_t work_ns = is_slow(m, nr) ? 5 * each_ns : each_ns;

	if (helped && m->shared)
		return run_helper(m, take_turns(m, work_ns), each_ns);
	m->now_ns += work_ns;
	m->left |= !helped;
	return helped ? run_helper(m, work_ns, each_ns) : 0;
}

static uint64_t job_units(const struct machine *m)
{
	return (m->chunks ?: JOB_CHUNKS) * CHUNK_NS;
}

/* Until all chunks of work are done; a chunk has as many units as it takes ns
 * if it is not slow. */
static struct outcome do_job(struct machine *m)
{
	struct outcome outcome = { 0 };
	struct steal_sample sample = { 0 };
	struct steal_watch watch;
	uint64_t start_ns = m->now_ns;

	steal_begin(&watch, m->now_ns);
	m->turn_left_ns = TURN_NS;
	m->helper_ns = 0;
	m->left = false;
	for (unsigned nr = 0; sample.units < job_units(m); nr++) {
		bool helped = steal_allows(&watch), found;

		sample.units += do_chunk(m, nr, helped) + CHUNK_NS;
		sample.own_units += CHUNK_NS;
		sample.now_ns = m->now_ns;
		sample.helped = helped;
		sample.switches += m->sleeps && is_slow(m, nr);
		sample.tells = m->steal_clock;
		sample.cpu = m->cpu;
		sample.stolen_ns = m->stolen_ns;
		sample.helper_stopped = m->tells_stopped && m->shared && helped;
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

static void found_by_two_jobs_serves_all(void **state)
{
	struct machine m = new_machine();

	m.shared = true;
	assert_int_equal(do_job(&m).found, 1);
	assert_int_equal(do_job(&m).found, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct outcome outcome = do_job(&m);

		assert_int_equal(outcome.found, 0);
		assert_int_equal(outcome.helped, 0);
	}
}

/* From when it is found helpers are tried again only at 1, 3, 7, ... 63, 127, ... s. */
static void time_without_helpers_grows(void **state)
{
	struct machine m = new_machine();
	uint64_t start_ns = m.now_ns;
	unsigned found = 0;

	m.shared = true;
	while (m.now_ns - start_ns < 600000 * MS)
		found += do_job(&m).found;
	assert_in_range(found, 10, 17);
}

/*
 * Jobs of all lengths, one after another, against a caller alone, where helper and caller
 * spin in up to four fifths of their turns.  With helpers all the time they would take five
 * times as long.
 */
static void lack_costs_a_quarter_at_most(void **state)
{
	for (unsigned chunks = 25; chunks <= 800; chunks *= 2)
		for (unsigned spin = 0; spin <= 80; spin += 40) {
			struct machine m = new_machine();
			uint64_t ns = 0;

			m.shared = true;
			m.chunks = chunks;
			m.spin_percent = spin;
			for (unsigned nr = 0; nr < 20; nr++)
				ns += do_job(&m).ns;
			assert_true(4 * ns <= 5 * 20 * job_units(&m));
		}
}

static void helpers_come_back(void **state)
{
	struct machine m = new_machine();
	struct outcome outcome;

	m.shared = true;
	do_job(&m);
	do_job(&m);
	m.shared = false;
	m.now_ns += 1000 * MS;
	outcome = do_job(&m);
	assert_int_equal(outcome.alone, PERIOD_CHUNKS);
	assert_int_equal(do_job(&m).alone, 0);
}

/* Also in the middle of a long job. */
static void long_job_gets_helpers_back(void **state)
{
	struct machine m = new_machine();
	struct outcome outcome = { 0 };

	m.shared = true;
	do_job(&m);
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

/* One comparison is wrong by as much as the cost of a unit changes meanwhile. */
static void cheaper_work_is_no_lack(void **state)
{
	static const unsigned thens[] = { 75, 50, 10, 1 };

	for (unsigned i = 0; i < sizeof(thens) / sizeof(*thens); i++) {
		struct machine m = new_machine();
		struct outcome outcome;

		m.helper_percent = 74;
		m.slow_at = 20;
		m.then_percent = thens[i];
		outcome = do_job(&m);
		assert_int_equal(outcome.found, 0);
		assert_true(outcome.alone >= 4);
		assert_int_equal(do_job(&m).found, 0);
	}
}

/* Nor is work that gains little. */
static void small_gains_are_no_lack(void **state)
{
	struct machine m = new_machine();

	m.helper_percent = 30;
	m.slow_every = 20;
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(do_job(&m).found, 0);
}

/* What is cheap just then deceives both comparisons: it is that job's own loss. */
static void one_job_alone_forbids_no_others(void **state)
{
	struct machine m = new_machine();
	struct machine other;
	struct outcome outcome;

	m.slow_at = 20;
	m.alone_percent = 10;
	outcome = do_job(&m);
	assert_int_equal(outcome.found, 1);
	other = (struct machine){ .now_ns = m.now_ns };
	assert_int_equal(do_job(&other).alone, PERIOD_CHUNKS);
	assert_int_equal(do_job(&other).alone, 0);
}

static void callers_that_sleep_are_not_stopped(void **state)
{
	struct machine m = new_machine();

	m.slow_every = 10;
	m.sleeps = true;
	assert_int_equal(do_job(&m).alone, 0);
}

/* Without one this is suspected: expensive_chunks_cost_little. */
static void steal_clock_acquits_expensive_chunks(void **state)
{
	struct machine m = new_machine();

	m.steal_clock = true;
	m.stolen_ns = 1;
	m.slow_every = 10;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(do_job(&m).alone, 0);
}

/* Each chunk is as long as several turns, and none is unusual: without a clock none of
 * these jobs suspects anything. */
static void check_even_chunks(bool steal_clock, bool tells_stopped)
{
	struct machine m = new_machine();
	unsigned found = 0;
	uint64_t ns = 0;

	m.shared = true;
	m.chunks = 25;
	m.spin_percent = 70;
	m.steal_clock = steal_clock;
	m.tells_stopped = tells_stopped;
	for (unsigned nr = 0; nr < 20; nr++) {
		struct outcome outcome = do_job(&m);

		found += outcome.found;
		ns += outcome.ns;
	}
	assert_int_equal(found, steal_clock ? 2 : 0);
	assert_true(!steal_clock || 4 * ns <= 5 * 20 * job_units(&m));
}

static void steal_clock_finds_what_chunks_hide(void **state)
{
	check_even_chunks(false, false);
	check_even_chunks(true, false);
}

static void stopped_helpers_are_evidence(void **state)
{
	struct steal_sample sample = { .tells = true, .helped = true };
	struct machine m = new_machine();
	struct steal_watch watch;
	bool found;

	steal_begin(&watch, m.now_ns);
	for (unsigned i = 0; i < 10; i++) {
		sample.now_ns = m.now_ns + i * MS;
		steal_step(&watch, &sample, &found);
	}
	assert_true(steal_allows(&watch));
	sample.helper_stopped = true;
	assert_false(steal_step(&watch, &sample, &found));
	check_even_chunks(true, true);
}

/* What was stolen from another CPU says nothing. */
static void callers_that_migrate_are_not_stopped(void **state)
{
	struct steal_sample sample = { .tells = true, .helped = true };
	struct machine m = new_machine();
	struct steal_watch watch;
	bool found;

	steal_begin(&watch, m.now_ns);
	for (unsigned i = 0; i < 20; i++) {
		sample.now_ns = m.now_ns + i * MS;
		sample.cpu = i;
		sample.stolen_ns = i * 100 * MS;
		assert_true(steal_step(&watch, &sample, &found));
	}
}

static void clocks_that_run_backwards_do_no_harm(void **state)
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

KTEST_MAIN(KTEST(turns_are_found), KTEST(found_by_two_jobs_serves_all),
	   KTEST(time_without_helpers_grows),
	   KTEST(lack_costs_a_quarter_at_most), KTEST(helpers_come_back),
	   KTEST(long_job_gets_helpers_back),
	   KTEST(expensive_chunks_cost_little), KTEST(cheaper_work_is_no_lack),
	   KTEST(small_gains_are_no_lack),
	   KTEST(one_job_alone_forbids_no_others),
	   KTEST(callers_that_sleep_are_not_stopped),
	   KTEST(steal_clock_acquits_expensive_chunks),
	   KTEST(steal_clock_finds_what_chunks_hide),
	   KTEST(stopped_helpers_are_evidence),
	   KTEST(callers_that_migrate_are_not_stopped),
	   KTEST(clocks_that_run_backwards_do_no_harm))
