/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Failed chunks at the very beginning and end of a range, side by side, and
 * in the middle: the pieces between them are undone, no empty piece ever.
 *
 * The workers' failed chunks are written by hand, each pattern of eight
 * chunks in turn.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#include <string.h>

#define NR_CHUNKS 8
#define CHUNK 5

/* Every unit of the range was done, but for the chunks in @failed. */
static void fail_chunks(struct work *work, unsigned range, unsigned failed)
{
	struct kt_range *r = &work->ranges[range];
	uint8_t *start = r->start;

	for (unsigned i = 0; i < r->units; i++)
		start[i] = failed >> i / CHUNK & 1 ? WORK_FAILED : WORK_DONE;
	r->next = r->units;
	/* The highest first: undo must not rely on the order of workers. */
	for (unsigned i = NR_CHUNKS; i-- > 0;) {
		struct kt_worker *worker = &work->workers[work->nr_workers];

		if (!(failed >> i & 1))
			continue;
		worker->failed = true;
		worker->range = range;
		worker->fail.from = i * CHUNK;
		worker->fail.to = (i + 1) * CHUNK;
		worker->fail.start = start + i * CHUNK;
		worker->fail.end = start + (i + 1) * CHUNK;
		work->nr_workers++;
	}
}

static unsigned count_pieces(unsigned failed)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < NR_CHUNKS; i++)
		nr += !(failed >> i & 1) && (!i || failed >> (i - 1) & 1);
	return nr;
}

static void each_pattern_of_eight(void **state)
{
	static const uint64_t units[] = { NR_CHUNKS * CHUNK };

	for (unsigned failed = 0; failed < 1u << NR_CHUNKS; failed++) {
		struct work work;

		work_init(&work, 1, units);
		work_begin(&work, 0);
		fail_chunks(&work, 0, failed);
		work_undo(&work);
		work_check_undone(&work);
		assert_int_equal(work.undo_calls, count_pieces(failed));
		work_free(&work);
	}
}

static void each_pattern_in_two_ranges(void **state)
{
	static const uint64_t units[] = { NR_CHUNKS * CHUNK, 10,
					  NR_CHUNKS * CHUNK };

	for (unsigned failed = 0; failed < 1u << NR_CHUNKS; failed++) {
		unsigned other = failed ^ 0xff;
		struct work work;

		work_init(&work, 3, units);
		work_begin(&work, 0);
		fail_chunks(&work, 2, failed);
		fail_chunks(&work, 0, other);
		work_undo(&work);
		work_check_undone(&work);
		assert_int_equal(work.undo_calls,
				 count_pieces(failed) + count_pieces(other));
		work_free(&work);
	}
}

static void lowest_is_by_range_then_position(void **state)
{
	static const uint64_t units[] = { NR_CHUNKS * CHUNK,
					  NR_CHUNKS * CHUNK };
	const struct kt_worker *lowest;
	struct work work;

	work_init(&work, 2, units);
	work_begin(&work, 2);
	assert_null(work_lowest(&work));
	fail_chunks(&work, 1, 0x81);
	lowest = work_lowest(&work);
	assert_int_equal(lowest->range, 1);
	assert_int_equal(lowest->fail.from, 0);
	fail_chunks(&work, 0, 0xc0);
	lowest = work_lowest(&work);
	assert_int_equal(lowest->range, 0);
	assert_int_equal(lowest->fail.from, 6 * CHUNK);
	work_free(&work);
}

/* What was not claimed is not undone. */
static void range_partly_done(void **state)
{
	static const uint64_t units[] = { 100, 100 };
	struct work work;

	work_init(&work, 2, units);
	work_begin(&work, 0);
	memset(work.units, WORK_DONE, 30);
	memset(work.units + 100, WORK_DONE, 70);
	work.ranges[0].next = 30;
	work.ranges[1].next = 70;
	work_undo(&work);
	work_check_undone(&work);
	assert_int_equal(work.undone, 100);
	assert_int_equal(work.undo_calls, 2);
	work_free(&work);
}

KTEST_MAIN(KTEST(each_pattern_of_eight), KTEST(each_pattern_in_two_ranges),
	   KTEST(lowest_is_by_range_then_position), KTEST(range_partly_done))
