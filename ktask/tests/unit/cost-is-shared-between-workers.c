/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A worker in a cheap stretch learns that another has met expensive units, and
 * cuts its chunks accordingly; once all are cheap again it is forgotten.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#define UNITS (1 << 20)
#define CHEAP_NS 10ull
#define EXPENSIVE_NS 1000

static struct work work;

/* Units of the first range are expensive, of the others cheap. */
static int by_range(struct work *w, uint64_t from, uint64_t to)
{
	port_now_ns += (to - from) * (from < UNITS ? EXPENSIVE_NS : CHEAP_NS);
	return 0;
}

static void begin_job(void)
{
	static const uint64_t units[] = { UNITS, UNITS, UNITS };

	work_init(&work, 3, units);
	work.unit_ns = 0;
	work.chunk = by_range;
	work_begin(&work, 3);
	for (unsigned i = 0; i < 3; i++)
		work.workers[i].tick = work_leave;
}

/* One chunk of worker @index; returns its units. */
static uint64_t one_chunk(unsigned index)
{
	struct kt_worker *worker = &work.workers[index];
	uint64_t units = worker->units;

	kt_job_work(&work.job, worker);
	return worker->units - units;
}

static void cheap_worker_is_told_of_expensive_units(void **state)
{
	uint64_t before, after;

	begin_job();
	for (unsigned i = 0; i < 4; i++)
		before = one_chunk(1);
	for (unsigned i = 0; i < 4; i++)
		one_chunk(0);
	one_chunk(1);
	after = one_chunk(1);
	/* 100 times more expensive units: 1 ms of those, not 1 ms of cheap ones; but
	 * at least 20 us. */
	assert_true(before * CHEAP_NS > 500000);
	assert_in_range(after, KT_SHORTEST_NS / CHEAP_NS / 2,
			2 * KT_SHORTEST_NS / CHEAP_NS);
	/* And the one in the expensive stretch has forgotten nothing by that. */
	assert_in_range(one_chunk(0), 500, 1100);
	work_free(&work);
}

static void sharing_is_mutual_and_lasts(void **state)
{
	begin_job();
	for (unsigned i = 0; i < 50; i++) {
		uint64_t cheap;

		one_chunk(0);
		one_chunk(1);
		cheap = one_chunk(2);
		if (i >= 4)
			assert_true(cheap * CHEAP_NS < 100000);
	}
	work_free(&work);
}

static void expensive_past_is_forgotten(void **state)
{
	uint64_t cheap = CHEAP_NS << KT_COST_SHIFT;

	begin_job();
	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < 3; j++)
			one_chunk(j);
	assert_true(kt_load(&work.job.cost.high) > 50 * cheap);
	for (unsigned i = 0; i < 150; i++) {
		one_chunk(1);
		one_chunk(2);
		if (work.workers[1].cost.high < 4 * cheap)
			break;
	}
	/* Before the cheap ranges are used up. */
	assert_int_equal(work.workers[1].range, 1);
	assert_true(kt_load(&work.job.cost.high) < 8 * cheap);
	assert_true(work.workers[2].cost.high < 8 * cheap);
	work_free(&work);
}

/* All threads read it at each claim: it is written when it changes by a quarter. */
static void a_little_change_is_not_told(void **state)
{
	uint64_t cost = CHEAP_NS << KT_COST_SHIFT;

	begin_job();
	work.job.cost.mean = work.job.cost.high = cost + cost / 8;
	kt_worker_begin(&work.workers[1], &work.job, 1, 0);
	work.workers[1].tick = work_leave;
	assert_true(one_chunk(1) > 0);
	assert_true(work.workers[1].cost.high < cost + cost / 8);
	assert_int_equal(work.job.cost.high, cost + cost / 8);
	work_free(&work);
}

/* Between the two stores of another worker's estimate. */
static void half_an_estimate_is_harmless(void **state)
{
	begin_job();
	work.job.cost.mean = 1 << KT_COST_SHIFT;
	work.job.cost.high = 0;
	kt_worker_begin(&work.workers[1], &work.job, 1, 0);
	work.workers[1].tick = work_leave;
	assert_true(one_chunk(1) > 0);
	work_free(&work);
	begin_job();
	work.job.cost.mean = 0;
	work.job.cost.high = 1 << KT_COST_SHIFT;
	kt_worker_begin(&work.workers[1], &work.job, 1, 0);
	work.workers[1].tick = work_leave;
	assert_int_equal(one_chunk(1), 1);
	work_free(&work);
}

KTEST_MAIN(KTEST(cheap_worker_is_told_of_expensive_units),
	   KTEST(sharing_is_mutual_and_lasts),
	   KTEST(expensive_past_is_forgotten),
	   KTEST(a_little_change_is_not_told),
	   KTEST(half_an_estimate_is_harmless))
