/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * sync: each file gets its fsync(2), or fdatasync(2), after its ranges were
 * written; what either says is that file's error, and none is lost.
 */
#include "ktest.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "files.h"

static _Atomic unsigned nr_syncs, nr_data_syncs, nr_ranges, nr_begun, nr_early;
static _Atomic int sync_error, range_error;
static _Atomic off_t range_fails_at = -1;
static _Atomic uint64_t written;

int fsync(int fd)
{
	nr_syncs++;
	errno = sync_error;
	return sync_error ? -1 : 0;
}

int fdatasync(int fd)
{
	nr_data_syncs++;
	errno = sync_error;
	return sync_error ? -1 : 0;
}

int sync_file_range(int fd, off_t offset, off_t len, unsigned flags)
{
	/* Written and waited for, or begun. */
	if (flags == SYNC_FILE_RANGE_WRITE)
		nr_begun++;
	else
		nr_ranges++;
	nr_early += nr_syncs || nr_data_syncs;
	written += (uint64_t)len;
	if (range_error && range_fails_at >= offset &&
	    range_fails_at < offset + len) {
		errno = range_error;
		return -1;
	}
	return 0;
}

static int begin(void **state)
{
	nr_syncs = nr_data_syncs = nr_ranges = nr_begun = nr_early = 0;
	sync_error = range_error = 0;
	range_fails_at = -1;
	written = 0;
	return files_begin(state);
}

static struct ktask_file by_path(const char *path)
{
	return (struct ktask_file){ .path = path, .len = KTASK_TO_END };
}

static void a_large_file_goes_by_ranges(void **state)
{
	struct ktask_file file = by_path(files_make("file", 40 * MIB + 5, 1));

	assert_int_equal(files_run("sync", &file, 1, 0, NULL), 0);
	assert_int_equal(written, 40 * MIB + 5);
	assert_int_equal(nr_syncs, 1);
	assert_int_equal(nr_data_syncs, 0);
	assert_int_equal(nr_early, 0);
	files_check(file.path, 0, 40 * MIB + 5, 0, 1);
}

static void data_only(void **state)
{
	int fd = open(files_make("file", 40 * MIB, 1), O_RDONLY | O_CLOEXEC);

	assert_int_equal(ktask_sync(fd, MIB, 8 * MIB, KTASK_SYNC_DATA), 0);
	assert_int_equal(written, 8 * MIB);
	assert_int_equal(nr_syncs, 0);
	assert_int_equal(nr_data_syncs, 1);
	close(fd);
}

static void many_files_and_their_folder(void **state)
{
	struct ktask_file files[101];
	char names[100][96];

	for (unsigned i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		strcpy(names[i], files_make(name, i * 100, i));
		files[i] = by_path(names[i]);
	}
	files[100] = by_path(files_folder);
	assert_int_equal(files_run("sync", files, 101, 0, NULL), 0);
	assert_int_equal(nr_syncs, 101);
	assert_int_equal(nr_ranges, 0);
	/* But for the empty one, and the folder. */
	assert_int_equal(nr_begun, 99);
	assert_int_equal(nr_early, 0);
}

/* Beside one by ranges or not. */
static void short_files_are_begun_and_not_waited_for(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_file files[3] = { by_path(files_make("a", 4 * MIB, 1)),
				       by_path(files_make("b", MIB + 3, 2)),
				       by_path(files_make("c", 9 * MIB, 3)) };

	assert_int_equal(files_run("sync", files, 2, 0, &result), 0);
	assert_int_equal(nr_syncs, 2);
	assert_int_equal(nr_begun, 2);
	assert_int_equal(nr_ranges, 0);
	assert_int_equal(written, 5 * MIB + 3);
	assert_int_equal(result.units, 5 * MIB + 3);
	nr_syncs = nr_begun = written = 0;
	assert_int_equal(files_run("sync", files, 3, 0, &result), 0);
	assert_int_equal(nr_syncs, 3);
	assert_int_equal(nr_begun, 2);
	assert_int_equal(nr_early, 0);
	assert_int_equal(written, 14 * MIB + 3);
	assert_int_equal(result.units, 14 * MIB + 3);
}

static void what_cannot_be_begun_is_its_error(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_file files[2] = { by_path(files_make("a", MIB, 1)),
				       by_path(files_make("b", 100, 2)) };

	range_fails_at = 4096;
	range_error = ENOSPC;
	assert_int_equal(files_run("sync", files, 2, 0, &result), -ENOSPC);
	assert_int_equal(files[0].error, -ENOSPC);
	assert_int_equal(files[1].error, 0);
	assert_int_equal(nr_syncs, 1);
	range_error = ENOSYS;
	assert_int_equal(files_run("sync", files, 2, 0, &result), 0);
	assert_int_equal(nr_syncs, 3);
}

static void no_error_is_lost(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_file files[2] = { by_path(files_make("a", 9 * MIB, 1)),
				       by_path(files_make("b", 9 * MIB, 1)) };

	sync_error = EIO;
	assert_int_equal(files_run("sync", files, 2, 0, &result), -EIO);
	assert_int_equal(files[0].error, -EIO);
	assert_int_equal(files[1].error, -EIO);
	assert_int_equal(nr_syncs, 2);
	/* What a range says fsync() may not say again. */
	sync_error = 0;
	range_error = EIO;
	range_fails_at = 5 * MIB;
	assert_int_equal(files_run("sync", files, 1, 0, &result), -EIO);
	assert_true(files[0].fail_offset <= 5 * MIB);
	/* That ranges cannot be written is none. */
	range_error = ENOSYS;
	assert_int_equal(files_run("sync", files, 1, 0, &result), 0);
	range_error = ESPIPE;
	assert_int_equal(files_run("sync", files, 1, 0, &result), 0);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, begin, files_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILES(a_large_file_goes_by_ranges),
		WITH_FILES(data_only),
		WITH_FILES(many_files_and_their_folder),
		WITH_FILES(short_files_are_begun_and_not_waited_for),
		WITH_FILES(what_cannot_be_begun_is_its_error),
		WITH_FILES(no_error_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
