/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Of a million files that one job works on, each chunk finds its first in a number of
 * steps that does not grow with the files, also where there is no memory for an index:
 * then more steps, but the same file.
 */
#include <stdlib.h>

#include "ktest.h"

static int refuse_memory;

static void *allocate_or_refuse(size_t nr, size_t size)
{
	return refuse_memory ? NULL : calloc(nr, size);
}

#define calloc allocate_or_refuse
#include "ops/file_layout.c"
#undef calloc

#define NR_FILES 1000000u
#define STEP (64 * 1024u)

static size_t nr_asked;

/* Most are small, some large, some empty. */
static uint64_t size_of_file(const void *arg, size_t index)
{
	unsigned seed = (unsigned)index * 2654435761u;

	(void)arg;
	nr_asked++;
	return seed >> 30 ? (uint64_t)(seed >> 26 & 3) * STEP : 0;
}

/* Each file that has bytes, at its first and its last one. */
static size_t find_all(struct file_layout *layout, size_t nr_files,
		       size_t every)
{
	uint64_t pos = STEP, begin;
	size_t most = 0;

	for (size_t i = 0; i < nr_files; i++) {
		uint64_t bytes = size_of_file(NULL, i);

		for (unsigned last = 0; bytes && i % every == 0 && last < 2;
		     last++) {
			nr_asked = 0;
			assert_int_equal(
				file_layout_find(layout,
						 pos + (bytes - 1) * last,
						 &begin),
				i);
			assert_int_equal(begin, pos);
			most = nr_asked > most ? nr_asked : most;
		}
		pos += bytes;
	}
	return most;
}

static void begin_layout(struct file_layout *layout, size_t nr_files)
{
	uint64_t end;

	assert_true(file_layout_begin(layout, nr_files, size_of_file, NULL,
				      STEP, UINT64_MAX, &end));
}

static void a_million_files_take_as_many_steps_as_few(void **state)
{
	struct file_layout layout;

	(void)state;
	begin_layout(&layout, NR_FILES);
	assert_true(find_all(&layout, NR_FILES, 1) < FILE_LAYOUT_STRIDE);
	file_layout_end(&layout);
}

static void without_memory_the_same_files_are_found(void **state)
{
	struct file_layout layout;

	(void)state;
	refuse_memory = 1;
	begin_layout(&layout, NR_FILES);
	refuse_memory = 0;
	find_all(&layout, NR_FILES, 997);
	file_layout_end(&layout);
}

static void any_small_number_of_files_is_found(void **state)
{
	struct file_layout layout;

	(void)state;
	for (size_t nr = 1; nr < 300; nr++) {
		begin_layout(&layout, nr);
		find_all(&layout, nr, 1);
		file_layout_end(&layout);
	}
	begin_layout(&layout, 20000);
	find_all(&layout, 20000, 1);
	file_layout_end(&layout);
}

static void positions_that_do_not_suffice_are_told(void **state)
{
	struct file_layout layout;
	uint64_t end;

	(void)state;
	assert_false(file_layout_begin(&layout, NR_FILES, size_of_file, NULL,
				       STEP, 1000 * STEP, &end));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_million_files_take_as_many_steps_as_few),
		cmocka_unit_test(without_memory_the_same_files_are_found),
		cmocka_unit_test(any_small_number_of_files_is_found),
		cmocka_unit_test(positions_that_do_not_suffice_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
