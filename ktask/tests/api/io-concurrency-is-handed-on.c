/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many threads paid in a job that blocks is where the next job of the same
 * name begins that is allowed as many; jobs without a name, and those that
 * measured nothing, leave nothing.
 */
#include "ktest.h"

#include "user/history/io_history.h"

#define LEAST 2
#define MOST 66

static struct kt_io begin_io(const char *name, uint64_t min_chunk,
			     unsigned least, unsigned most)
{
	struct kt_io io;

	io_history_begin(&io, name, min_chunk, least, most);
	assert_in_range(io.threads, least, most);
	return io;
}

static void keep_threads(const char *name, uint64_t min_chunk, unsigned threads)
{
	struct kt_io io = begin_io(name, min_chunk, LEAST, MOST);

	io.base = threads;
	io.windows = 1;
	io_history_end(&io, name, min_chunk);
}

static unsigned read_first(const char *name, uint64_t min_chunk, unsigned least,
			   unsigned most)
{
	return begin_io(name, min_chunk, least, most).threads;
}

static void the_next_job_goes_on(void **state)
{
	assert_int_equal(read_first("one", 1, LEAST, MOST), 4);
	keep_threads("one", 1, 12);
	assert_int_equal(read_first("one", 1, LEAST, MOST), 12);
	keep_threads("one", 1, 3);
	assert_int_equal(read_first("one", 1, LEAST, MOST), 3);
}

/* Nothing is known: a worker for each thread of the target. */
static void others_begin_anew(void **state)
{
	keep_threads("two", 1, 12);
	assert_int_equal(read_first("twos", 1, LEAST, MOST), 4);
	assert_int_equal(read_first("two", 2, LEAST, MOST), 4);
	assert_int_equal(read_first("three", 1, 12, 76), 24);
	assert_int_equal(read_first("three", 1, 60, 100), 100);
}

/* Fewer workers are another kind of job; a lower target is not. */
static void few_say_nothing_of_many(void **state)
{
	keep_threads("four", 1, 33);
	assert_int_equal(read_first("four", 1, LEAST, 8), 4);
	assert_int_equal(read_first("four", 1, LEAST, MOST), 33);
	assert_int_equal(read_first("four", 1, 1, MOST - 1), 33);
	assert_int_equal(read_first("four", 1, 40, MOST + 38), 40);
}

static void without_a_name_or_windows_nothing_is_kept(void **state)
{
	static const char *const bad[] = { NULL, "", "a b",
					   "0123456789abcdef" };
	struct kt_io io;

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(bad); i++) {
		keep_threads(bad[i], 1, 12);
		assert_int_equal(read_first(bad[i], 1, LEAST, MOST), 4);
	}
	io = begin_io("five", 1, LEAST, MOST);
	io.base = 12;
	io_history_end(&io, "five", 1);
	assert_int_equal(read_first("five", 1, LEAST, MOST), 4);
}

static void the_oldest_is_forgotten(void **state)
{
	char name[16];

	keep_threads("old", 1, 12);
	for (int i = 0; i < 16; i++) {
		assert_int_equal(read_first("old", 1, LEAST, MOST), 12);
		snprintf(name, sizeof(name), "new-%d", i);
		keep_threads(name, 1, 20);
	}
	assert_int_equal(read_first("old", 1, LEAST, MOST), 4);
	for (int i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "new-%d", i);
		assert_int_equal(read_first(name, 1, LEAST, MOST), 20);
	}
}

KTEST_MAIN(KTEST(the_next_job_goes_on), KTEST(others_begin_anew),
	   KTEST(few_say_nothing_of_many),
	   KTEST(without_a_name_or_windows_nothing_is_kept),
	   KTEST(the_oldest_is_forgotten))
