/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * copy_file: the destination's range becomes the source's, byte for byte, and
 * nothing around it changes; whatever refuses is named with its place, and no
 * wrong byte is ever called a copy.
 */
#include "ktest.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "files.h"

static _Atomic bool no_kernel_copy, no_direct, short_source;
static _Atomic int write_error;
static _Atomic off_t write_fails_from = -1;
static _Atomic unsigned nr_direct_writes;

ssize_t copy_file_range(int in, off_t *in_pos, int out, off_t *out_pos,
			size_t len, unsigned flags)
{
	static __thread ssize_t (*real)(int, off_t *, int, off_t *, size_t,
					unsigned);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "copy_file_range");
	if (short_source)
		return 0;
	if (no_kernel_copy || write_fails_from >= 0) {
		errno = EXDEV;
		return -1;
	}
	return real(in, in_pos, out, out_pos, len, flags);
}

/* A file to be cut when its holes are looked for, by whom that may be. */
static const char *_Atomic cut;

off_t lseek(int fd, off_t pos, int whence)
{
	static __thread off_t (*real)(int, off_t, int);
	const char *path =
		whence == SEEK_DATA ? atomic_exchange(&cut, NULL) : NULL;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "lseek");
	if (path)
		assert_int_equal(truncate(path, MIB), 0);
	return real(fd, pos, whence);
}

ssize_t pread(int fd, void *buf, size_t len, off_t pos)
{
	static __thread ssize_t (*real)(int, void *, size_t, off_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pread");
	return short_source ? 0 : real(fd, buf, len, pos);
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t pos)
{
	static __thread ssize_t (*real)(int, const void *, size_t, off_t);
	bool direct = fcntl(fd, F_GETFL) & O_DIRECT;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pwrite");
	if (direct && no_direct) {
		errno = EINVAL;
		return -1;
	}
	nr_direct_writes += direct;
	if (write_fails_from >= 0 && pos + (off_t)len > write_fails_from) {
		if (pos >= write_fails_from) {
			errno = write_error;
			return -1;
		}
		len = (size_t)(write_fails_from - pos);
	}
	return real(fd, buf, len, pos);
}

static char *empty(const char *name)
{
	return files_make(name, 0, 0);
}

static int copy(const char *from, const char *to, unsigned flags,
		struct ktask_file *file, struct ktask_result *result)
{
	*file = (struct ktask_file){ .path = from,
				     .dst_path = to,
				     .len = KTASK_TO_END };
	return files_run("copy_file", file, 1, flags, result);
}

static const size_t sizes[] = { 0,
				1,
				4095,
				4096,
				4097,
				64 * KIB - 1,
				64 * KIB + 1,
				MIB + 513,
				9 * MIB,
				9 * MIB + 4095 };

static void any_size(unsigned flags)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(sizes); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		char *from = files_make("from", sizes[i], i);
		char *to = empty("to");
		struct ktask_file file;

		assert_int_equal(copy(from, to, flags, &file, &result), 0);
		assert_int_equal(result.units, sizes[i]);
		assert_int_equal(files_size(to), sizes[i]);
		files_check(to, 0, sizes[i], 0, i);
	}
}

static void files_of_any_size(void **state)
{
	any_size(0);
	any_size(KTASK_FILE_SPARSE);
}

static void by_reading_and_writing(void **state)
{
	no_kernel_copy = true;
	any_size(0);
	no_kernel_copy = false;
}

static void past_the_page_cache(void **state)
{
	nr_direct_writes = 0;
	any_size(KTASK_FILE_DIRECT);
	if (!nr_direct_writes)
		ktest_skip("the file system has no direct writes");
}

static void where_direct_writes_are_refused(void **state)
{
	no_direct = true;
	any_size(KTASK_FILE_DIRECT);
	any_size(KTASK_FILE_DIRECT | KTASK_FILE_SPARSE);
	no_direct = false;
}

/* A range to the middle of a longer file. */
static void place(unsigned flags, uint64_t from, uint64_t to, uint64_t len)
{
	char *src = files_make("from", 8 * MIB, 1);
	char *dst = files_make("to", 16 * MIB, 2);
	int in = open(src, O_RDONLY | O_CLOEXEC);
	int out = open(dst, O_RDWR | O_CLOEXEC);

	assert_int_equal(ktask_copy_file(out, to, in, from, len, flags), 0);
	assert_int_equal(files_size(dst), 16 * MIB);
	files_check(dst, 0, to, 0, 2);
	files_check(dst, to, len, from, 1);
	files_check(dst, to + len, 16 * MIB - to - len, to + len, 2);
	assert_int_equal(lseek(in, 0, SEEK_CUR), 0);
	assert_int_equal(lseek(out, 0, SEEK_CUR), 0);
	close(in);
	close(out);
}

static void ranges_change_nothing_around(void **state)
{
	static const unsigned flags[] = { 0, KTASK_FILE_DIRECT,
					  KTASK_FILE_SPARSE, 3 };

	for (unsigned i = 0; i < 8; i++) {
		no_kernel_copy = i & 4;
		place(flags[i & 3], 0, 4096, MIB);
		place(flags[i & 3], 8192, 3 * MIB, 5 * MIB + 17);
		place(flags[i & 3], 12345, 54321, 4 * MIB + 999);
	}
	no_kernel_copy = false;
}

static void a_shorter_destination_grows(void **state)
{
	char *src = files_make("from", 4 * MIB, 1);
	char *dst = files_make("to", MIB, 2);
	int in = open(src, O_RDONLY | O_CLOEXEC);
	int out = open(dst, O_RDWR | O_CLOEXEC);

	/* To the end of the source, whatever is asked for. */
	assert_int_equal(ktask_copy_file(out, 512 * KIB, in, MIB, 99 * MIB, 0),
			 0);
	assert_int_equal(files_size(dst), 512 * KIB + 3 * MIB);
	files_check(dst, 0, 512 * KIB, 0, 2);
	files_check(dst, 512 * KIB, 3 * MIB, MIB, 1);
	close(in);
	close(out);
}

static void holes_stay_holes(void **state)
{
	char *from = empty("from"), *to = empty("to");
	int fd = open(from, O_RDWR | O_CLOEXEC);
	struct ktask_file file;
	struct stat st[2];
	char byte = 'x';

	assert_int_equal(ftruncate(fd, 64 * MIB), 0);
	assert_int_equal(pwrite(fd, &byte, 1, 5 * MIB + 3), 1);
	assert_int_equal(pwrite(fd, &byte, 1, 40 * MIB), 1);
	assert_int_equal(copy(from, to, KTASK_FILE_SPARSE, &file, NULL), 0);
	assert_int_equal(fstat(fd, &st[0]), 0);
	close(fd);
	assert_int_equal(stat(to, &st[1]), 0);
	assert_int_equal(st[1].st_size, 64 * MIB);
	assert_true(st[1].st_blocks * 512 < 2 * (off_t)MIB);
	fd = open(to, O_RDONLY | O_CLOEXEC);
	for (off_t i = 0; i < 64 * (off_t)MIB; i += 65536) {
		assert_int_equal(pread(fd, &byte, 1, i), 1);
		assert_int_equal(byte, i == 40 * (off_t)MIB ? 'x' : 0);
	}
	assert_int_equal(pread(fd, &byte, 1, 5 * MIB + 3), 1);
	assert_int_equal(byte, 'x');
	close(fd);
}

static void many_files(void **state)
{
	struct ktask_file files[100];
	char names[2][100][96];

	for (unsigned i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		strcpy(names[0][i], files_make(name, i * 4097, i));
		snprintf(name, sizeof(name), "t%u", i);
		strcpy(names[1][i], empty(name));
		files[i] = (struct ktask_file){ .path = names[0][i],
						.dst_path = names[1][i],
						.len = KTASK_TO_END };
	}
	files[50].path = files_path("nosuch");
	files[60].dst_path = files_path("nosuch");
	assert_int_equal(files_run("copy_file", files, 100, 0, NULL), -ENOENT);
	for (unsigned i = 0; i < 100; i++) {
		if (i == 50 || i == 60) {
			assert_int_equal(files[i].error, -ENOENT);
			continue;
		}
		assert_int_equal(files[i].error, 0);
		assert_int_equal(files_size(names[1][i]), i * 4097);
		files_check(names[1][i], 0, i * 4097, 0, i);
	}
}

/* ---- errors ---- */

static void writing_fails_where_it_fails(void **state)
{
	static const int errors[] = { ENOSPC, EIO, EDQUOT };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(errors); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		char *from = files_make("from", 8 * MIB, 1);
		char *to = empty("to");
		struct ktask_file file;

		write_error = errors[i];
		write_fails_from = (off_t)(i * 3 * MIB + 100);
		assert_int_equal(copy(from, to, 0, &file, &result), -errors[i]);
		assert_int_equal(file.fail_offset, write_fails_from);
		assert_int_equal(result.fail_offset, write_fails_from);
		write_fails_from = -1;
		files_check(to, 0, i * 3 * MIB + 100, 0, 1);
		files_check(from, 0, 8 * MIB, 0, 1);
	}
}

static int beyond_the_limit(void *arg)
{
	const struct rlimit limit = { MIB, MIB };
	struct ktask_file file;

	signal(SIGXFSZ, SIG_IGN);
	ktest_check(!setrlimit(RLIMIT_FSIZE, &limit));
	ktest_check(copy(((char **)arg)[0], ((char **)arg)[1], 0, &file,
			 NULL) == -EFBIG);
	return 0;
}

static void the_limit_of_file_sizes(void **state)
{
	char *paths[2] = { files_make("from", 2 * MIB, 1), empty("to") };

	assert_int_equal(ktest_in_child(beyond_the_limit, paths), 0);
}

/* Zeroes that nobody wrote are no copy. */
static void a_source_that_became_shorter(void **state)
{
	char *from = files_make("from", 2 * MIB, 1), *to = empty("to");
	struct ktask_file file;

	short_source = true;
	assert_int_equal(copy(from, to, 0, &file, NULL), -ENODATA);
	assert_int_equal(copy(from, to, KTASK_FILE_DIRECT, &file, NULL),
			 -ENODATA);
	short_source = false;
}

/* The end of what is there is no hole. */
static void a_source_cut_when_its_holes_are_found(void **state)
{
	char *from = files_make("from", 2 * MIB, 1), *to = empty("to");
	struct ktask_file file;

	cut = from;
	assert_int_equal(copy(from, to, KTASK_FILE_SPARSE, &file, NULL),
			 -ENODATA);
	assert_null(cut);
}

static void what_is_no_pair_of_files(void **state)
{
	char *from = files_make("from", MIB, 1), *to = empty("to");
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CLOEXEC);
	int append = open(to, O_WRONLY | O_APPEND | O_CLOEXEC);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct ktask_file file;

	assert_int_equal(copy(from, from, 0, &file, NULL), -EINVAL);
	assert_int_equal(ktask_copy_file(in, 0, in, 0, MIB, 0), -EBADF);
	assert_int_equal(ktask_copy_file(out, 0, out, 0, MIB, 0), -EBADF);
	assert_int_equal(ktask_copy_file(append, 0, in, 0, MIB, 0), -EBADF);
	assert_int_equal(ktask_copy_file(-1, 0, in, 0, MIB, 0), -EBADF);
	assert_int_equal(ktask_copy_file(out, 0, -1, 0, MIB, 0), -EBADF);
	assert_int_equal(ktask_copy_file(null, 0, in, 0, MIB, 0), -EINVAL);
	assert_int_equal(files_size(to), 0);
	files_check(from, 0, MIB, 0, 1);
	close(in);
	close(out);
	close(append);
	close(null);
}

#define WITH_FILES(test) \
	cmocka_unit_test_setup_teardown(test, files_begin, files_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILES(files_of_any_size),
		WITH_FILES(by_reading_and_writing),
		WITH_FILES(past_the_page_cache),
		WITH_FILES(where_direct_writes_are_refused),
		WITH_FILES(ranges_change_nothing_around),
		WITH_FILES(a_shorter_destination_grows),
		WITH_FILES(holes_stay_holes),
		WITH_FILES(many_files),
		WITH_FILES(writing_fails_where_it_fails),
		WITH_FILES(the_limit_of_file_sizes),
		WITH_FILES(a_source_that_became_shorter),
		WITH_FILES(a_source_cut_when_its_holes_are_found),
		WITH_FILES(what_is_no_pair_of_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
