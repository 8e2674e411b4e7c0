/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inner edges of chunks are multiples of the alignment as addresses, wherever
 * the range begins; with an iterator, as units counted from its first one.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#define ALIGN 64
#define UNITS 2000

static void check_edge(uint64_t at)
{
	assert_int_equal(at % ALIGN, 0);
}

static int edges_are_addresses(struct work *work, uint64_t from, uint64_t to)
{
	if (to < work->nr_units)
		check_edge((uintptr_t)(work->units + to));
	return 0;
}

static int edges_are_units(struct work *work, uint64_t from, uint64_t to)
{
	const struct kt_range *range = &work->ranges[0];
	uint64_t skipped = (uint64_t)((uint8_t *)range->start - work->units);

	if (to < work->nr_units)
		check_edge(to - skipped);
	return 0;
}

static void *advance_position(void *position, size_t size)
{
	return (uint8_t *)position + size;
}

/* Begins @skip bytes into the array; the rest of it is not part of the job. */
static void run_job(unsigned skip, bool iterated)
{
	static const uint64_t units[] = { UNITS };
	struct work work;

	work_init(&work, 1, units);
	work.ranges[0].start = work.units + skip;
	work.ranges[0].units = UNITS - skip;
	work.job.iter = iterated ? advance_position : NULL;
	work.job.split.align = ALIGN;
	work.job.split.min_chunk = 10;
	work.chunk = iterated ? edges_are_units : edges_are_addresses;
	work_begin(&work, 1);
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.faults, 0);
	assert_int_equal(work.workers[0].units, UNITS - skip);
	assert_in_range(work.workers[0].chunks, 10, UNITS / ALIGN + 2);
	work_free(&work);
}

static void addresses_from_any_base(void **state)
{
	for (unsigned skip = 0; skip < 2 * ALIGN; skip++)
		run_job(skip, false);
}

static void iterated_units_from_any_base(void **state)
{
	for (unsigned skip = 0; skip < 2 * ALIGN; skip++)
		run_job(skip, true);
}

KTEST_MAIN(KTEST(addresses_from_any_base), KTEST(iterated_units_from_any_base))
