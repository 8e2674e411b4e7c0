/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * copy_file with KTASK_FILE_TRUNCATE: a destination ends as the copy and nothing
 * else, whatever it held; and holds that until its own copy begins, for which
 * the source must be there.
 */
#include "ktest.h"

#include <dlfcn.h>

#include "files.h"

#define NR_FILES 40
#define OLD 77

static const char *watched; /* looked at when something is written first */
static size_t watched_size;
static int cut_error;

ssize_t copy_file_range(int in, off_t *in_pos, int out, off_t *out_pos,
			size_t len, unsigned flags)
{
	static __thread ssize_t (*real)(int, off_t *, int, off_t *, size_t,
					unsigned);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "copy_file_range");
	if (watched) {
		watched_size = files_size(watched);
		watched = NULL;
	}
	return real(in, in_pos, out, out_pos, len, flags);
}

int ftruncate(int fd, off_t len)
{
	static __thread int (*real)(int, off_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "ftruncate");
	if (cut_error) {
		errno = cut_error;
		return -1;
	}
	return real(fd, len);
}

static int copy(const char *from, const char *to, unsigned flags)
{
	struct ktask_file file = { .path = from,
				   .dst_path = to,
				   .len = KTASK_TO_END };
	int error = files_run("copy_file", &file, 1,
			      flags | KTASK_FILE_TRUNCATE, NULL);

	assert_int_equal(file.error, error);
	return error;
}

static void nothing_of_the_old_is_left(void **state)
{
	static const size_t sizes[] = {
		0, 1, 4096, 65537, MIB + 513, 9 * MIB, 9 * MIB + 4095, 100 * MIB
	};
	static const unsigned flags[] = { 0, KTASK_FILE_SPARSE,
					  KTASK_FILE_DIRECT, 3 };

	for (unsigned i = 0; i < 8 * 8; i++) {
		size_t len = sizes[i / 8], old = sizes[i % 8];
		char *from, *to;

		/* The largest once. */
		if (len == 100 * MIB || (old == 100 * MIB && i / 8 != 3))
			continue;
		from = files_make("from", len, i);
		to = files_make("to", old, OLD);
		assert_int_equal(copy(from, to, flags[(i + i / 8) % 4]), 0);
		assert_int_equal(files_size(to), len);
		files_check(to, 0, len, 0, i);
	}
}

static void holes_are_zero_where_data_was(void **state)
{
	char *from = files_make("from", 0, 0);
	char *to = files_make("to", 8 * MIB, OLD);
	int fd;

	assert_int_equal(truncate(from, 4 * MIB), 0);
	assert_int_equal(copy(from, to, KTASK_FILE_SPARSE), 0);
	assert_int_equal(files_size(to), 4 * MIB);
	fd = open(to, O_RDONLY | O_CLOEXEC);
	for (off_t i = 0; i < 4 * (off_t)MIB; i += 4096) {
		char byte = 1;

		assert_int_equal(pread(fd, &byte, 1, i), 1);
		assert_int_equal(byte, 0);
	}
	close(fd);
}

static void without_a_source_it_stays(void **state)
{
	char *to = files_make("to", MIB, OLD);

	assert_int_equal(copy(files_path("nosuch"), to, 0), -ENOENT);
	assert_int_equal(copy(files_folder, to, 0), -EISDIR);
	assert_int_equal(copy(to, to, 0), -EINVAL);
	assert_int_equal(files_size(to), MIB);
	files_check(to, 0, MIB, 0, OLD);
}

/* As a file that may only be appended to. */
static void what_cannot_be_emptied_stays(void **state)
{
	char *from = files_make("from", MIB, 1);
	char *to = files_make("to", MIB, OLD);

	cut_error = EPERM;
	assert_int_equal(copy(from, to, 0), -EPERM);
	assert_int_equal(copy(files_make("none", 0, 0), to, 0), -EPERM);
	cut_error = 0;
	files_check(to, 0, MIB, 0, OLD);
}

static char names[2][NR_FILES][96];

static void pairs(struct ktask_file *files, size_t len)
{
	for (unsigned i = 0; i < NR_FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		strcpy(names[0][i], files_make(name, len, i));
		snprintf(name, sizeof(name), "t%u", i);
		strcpy(names[1][i], files_make(name, 2 * len, OLD));
		files[i] = (struct ktask_file){ .path = names[0][i],
						.dst_path = names[1][i],
						.len = KTASK_TO_END };
	}
}

static void check_pairs(void)
{
	for (unsigned i = 0; i < NR_FILES; i++) {
		size_t len = files_size(names[0][i]);

		assert_int_equal(files_size(names[1][i]), len);
		files_check(names[1][i], 0, len, 0, i);
	}
}

static void others_stay_until_it_is_their_turn(void **state)
{
	struct ktask_op_args args = { .nr_files = NR_FILES,
				      .flags = KTASK_FILE_TRUNCATE };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_file files[NR_FILES];

	pairs(files, MIB);
	args.files = files;
	opts.max_threads = 1;
	watched = names[1][NR_FILES - 1];
	watched_size = 0;
	assert_int_equal(ktask_op_run(ktask_op_find("copy_file"), &args, &opts),
			 0);
	assert_null(watched);
	assert_int_equal(watched_size, 2 * MIB);
	check_pairs();
}

/* Threads meet in the ranges of one file, and at its beginning. */
static void by_several_threads(void **state)
{
	struct ktask_file files[NR_FILES];

	for (int i = 0; i < 3; i++) {
		pairs(files, 3 * MIB + 12345);
		assert_int_equal(
			files_run("copy_file", files, NR_FILES,
				  KTASK_FILE_TRUNCATE | KTASK_FILE_SPARSE,
				  NULL),
			0);
		check_pairs();
	}
}

#define WITH_FILES(test) \
	cmocka_unit_test_setup_teardown(test, files_begin, files_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILES(nothing_of_the_old_is_left),
		WITH_FILES(holes_are_zero_where_data_was),
		WITH_FILES(without_a_source_it_stays),
		WITH_FILES(what_cannot_be_emptied_stays),
		WITH_FILES(others_stay_until_it_is_their_turn),
		WITH_FILES(by_several_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
