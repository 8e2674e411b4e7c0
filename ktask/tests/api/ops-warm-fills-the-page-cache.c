/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * warm: every page of the range is in the page cache afterwards; one file that
 * fails keeps no other cold; errors are those of open(2) and read(2), at the
 * first byte that failed.
 */
#include "ktest.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "files.h"

#define LEN (48 * MIB)

/* ---- calls that may be made to fail ---- */

static _Atomic bool no_sendfile;
static _Atomic off_t fail_from = -1; /* reading behind it fails */
static _Atomic int fail_with;
static _Atomic unsigned nr_reads;
static _Atomic unsigned nr_askew; /* 1 MiB to no multiple of that */

ssize_t sendfile(int out, int in, off_t *pos, size_t len)
{
	static __thread ssize_t (*real)(int, int, off_t *, size_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sendfile");
	if (no_sendfile) {
		errno = EINVAL;
		return -1;
	}
	if (fail_from >= 0 && *pos + (off_t)len > fail_from) {
		if (*pos >= fail_from) {
			errno = fail_with;
			return -1;
		}
		len = (size_t)(fail_from - *pos);
	}
	return real(out, in, pos, len);
}

ssize_t pread(int fd, void *buf, size_t len, off_t pos)
{
	static __thread ssize_t (*real)(int, void *, size_t, off_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pread");
	atomic_fetch_add(&nr_reads, 1);
	if (len == MIB && (uintptr_t)buf % MIB)
		atomic_fetch_add(&nr_askew, 1);
	if (fail_from >= 0 && pos + (off_t)len > fail_from) {
		if (pos >= fail_from) {
			errno = fail_with;
			return -1;
		}
		len = (size_t)(fail_from - pos);
	}
	return real(fd, buf, len, pos);
}

/* ---- what is in the cache ---- */

static size_t count_cached(const char *path)
{
	size_t len = files_size(path), nr = (len + 4095) / 4096, found = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char *there = malloc(nr);
	void *at = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mincore(at, len, there), 0);
	for (size_t i = 0; i < nr; i++)
		found += there[i] & 1;
	munmap(at, len);
	free(there);
	close(fd);
	return found;
}

static char *make_cold(const char *name, size_t len)
{
	char *path = files_make(name, len, 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	if (len && count_cached(path))
		ktest_skip("the page cache keeps what it shall forget");
	return path;
}

/* Pages that the kernel has taken from the cache of any file, since it began. */
static unsigned long long taken_back(void)
{
	static const char *const names[] = { "pgsteal_file ", "drop_pagecache ",
					     "pginodesteal ",
					     "kswapd_inodesteal " };
	FILE *file = fopen("/proc/vmstat", "re");
	unsigned long long sum = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		for (unsigned i = 0; i < KTEST_ARRAY_SIZE(names); i++)
			if (!strncmp(line, names[i], strlen(names[i])))
				sum += strtoull(line + strlen(names[i]), NULL,
						10);
	if (file)
		fclose(file);
	return sum;
}

/*
 * sendfile() returns when each page is in the cache.  Pages that nobody else
 * uses are the first that a machine short of memory takes back, this very
 * moment: only if it took some since @before may one be missing.
 *
 * Return: something was taken, and it is to be done again.
 */
static bool was_robbed(unsigned long long before)
{
	static unsigned nr;

	if (taken_back() == before)
		return false;
	if (++nr >= 500)
		ktest_skip("the machine takes pages back all the time");
	return true;
}

static struct ktask_file by_path(const char *path)
{
	return (struct ktask_file){ .struct_size = sizeof(struct ktask_file),
				    .path = path,
				    .len = KTASK_TO_END };
}

static void a_file_is_read(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *path = make_cold("file", LEN + 123);
	struct ktask_file file = by_path(path);
	unsigned long long before;
	size_t found;

	do {
		before = taken_back();
		assert_int_equal(files_run("warm", &file, 1, 0, &result), 0);
		found = count_cached(path);
	} while (found <= LEN / 4096 && was_robbed(before));
	assert_int_equal(found, LEN / 4096 + 1);
	assert_int_equal(result.units, LEN + 123);
	assert_int_equal(file.size, LEN + 123);
	assert_int_equal(file.error, 0);
	files_check(path, 0, LEN + 123, 0, 1);
}

static void so_it_is_where_nothing_can_be_sent(void **state)
{
	char *path = make_cold("file", LEN + 123);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned long long before;
	size_t found;

	no_sendfile = true;
	do {
		before = taken_back();
		assert_int_equal(ktask_warm(fd, 0, KTASK_TO_END, 0), 0);
		found = count_cached(path);
	} while (found <= LEN / 4096 && was_robbed(before));
	no_sendfile = false;
	assert_int_equal(found, LEN / 4096 + 1);
	/* The caller's descriptor is as it was. */
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	close(fd);
}

static void a_range_is_read(void **state)
{
	char *path = make_cold("file", LEN);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned long long before;
	size_t found;

	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	do {
		before = taken_back();
		assert_int_equal(ktask_warm(fd, 8 * MIB, 4 * MIB, 0), 0);
		found = count_cached(path);
	} while (found < 4 * MIB / 4096 && was_robbed(before));
	assert_true(found >= 4 * MIB / 4096);
	assert_true(found < 12 * MIB / 4096);
	/* Behind the end there is nothing. */
	assert_int_equal(ktask_warm(fd, LEN + 5, 4 * MIB, 0), 0);
	assert_int_equal(ktask_warm(fd, LEN - 5, 4 * MIB, 0), 0);
	close(fd);
}

/* One of seven is empty. */
static size_t length_of(unsigned i)
{
	return i % 7 ? i * 1001 : 0;
}

static size_t count_missing(char names[][96], unsigned nr)
{
	size_t pages = 0;

	for (unsigned i = 0; i < nr; i++)
		if (length_of(i))
			pages += (length_of(i) + 4095) / 4096 -
				 count_cached(names[i]);
	return pages;
}

static void many_files_are_read(void **state)
{
	struct ktask_file files[200];
	struct ktask_result result = KTASK_RESULT_INIT;
	unsigned long long before;
	char names[200][96];
	size_t bytes = 0, lost;

	for (unsigned i = 0; i < 200; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%u", files_directory,
			 i);
		make_cold(names[i] + strlen(files_directory) + 1, length_of(i));
		files[i] = by_path(names[i]);
		bytes += length_of(i);
	}
	do {
		before = taken_back();
		assert_int_equal(files_run("warm", files, 200, 0, &result), 0);
		assert_int_equal(result.units, bytes);
		for (unsigned i = 0; i < 200; i++)
			assert_int_equal(files[i].size, length_of(i));
		lost = count_missing(names, 200);
	} while (lost && was_robbed(before));
	assert_int_equal(lost, 0);
}

static void past_the_page_cache(void **state)
{
	char *path = make_cold("file", 8 * MIB + 77);
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	struct ktask_file file = by_path(path);

	if (fd < 0)
		ktest_skip("the file system has no direct reads");
	close(fd);
	nr_reads = 0;
	assert_int_equal(files_run("warm", &file, 1, KTASK_FILE_DIRECT, NULL),
			 0);
	assert_true(nr_reads >= 8);
	assert_int_equal(count_cached(path), 0);
	/* From anywhere to anywhere, through a descriptor that is not direct. */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(ktask_warm(fd, 12345, 3 * MIB + 1, KTASK_FILE_DIRECT),
			 0);
	assert_int_equal(count_cached(path), 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_DIRECT, 0);
	close(fd);
}

/* Memory that asks for huge pages. */
static unsigned huge_mappings(void)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	char line[512];
	unsigned nr = 0;

	while (file && fgets(line, sizeof(line), file))
		nr += !strncmp(line, "VmFlags:", 8) && strstr(line, " hg");
	if (file)
		fclose(file);
	return nr;
}

/* A huge page makes one request of what are else 256 pieces. */
static void buffers_are_halves_of_huge_pages(void **state)
{
	char *path = make_cold("file", LEN);
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	struct ktask_file file = by_path(path);
	unsigned before;

	if (fd < 0)
		ktest_skip("the file system has no direct reads");
	close(fd);
	before = huge_mappings();
	nr_reads = nr_askew = 0;
	assert_int_equal(files_run("warm", &file, 1, KTASK_FILE_DIRECT, NULL),
			 0);
	assert_true(nr_reads >= LEN / MIB);
	assert_int_equal(nr_askew, 0);
	/* And are given back. */
	assert_int_equal(huge_mappings(), before);
}

/* ---- errors ---- */

static void one_that_fails_keeps_no_other_cold(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	unsigned long long before;
	char first[128], last[128];
	struct ktask_file files[4];
	size_t found;

	strcpy(first, make_cold("first", 3 * MIB));
	strcpy(last, make_cold("last", 3 * MIB));
	files[0] = by_path(first);
	files[1] = by_path(files_path("nosuch"));
	files[2] = by_path(files_directory);
	files[3] = by_path(last);
	do {
		before = taken_back();
		assert_int_equal(files_run("warm", files, 4, 0, &result),
				 -ENOENT);
		found = count_cached(first) + count_cached(last);
	} while (found < 6 * MIB / 4096 && was_robbed(before));
	assert_int_equal(result.error, -ENOENT);
	assert_int_equal(result.fail_range, 1);
	assert_int_equal(files[0].error, 0);
	assert_int_equal(files[1].error, -ENOENT);
	assert_int_equal(files[2].error, -EISDIR);
	assert_int_equal(files[3].error, 0);
	assert_int_equal(found, 6 * MIB / 4096);
	/* What is given is as it was: once more, without the bad ones. */
	files[1] = files[3];
	assert_int_equal(files_run("warm", files, 2, 0, NULL), 0);
}

static void reading_fails_where_it_fails(void **state)
{
	static const off_t offsets[] = { 0, 5 * MIB, 20 * MIB + 4096 };
	char *path = make_cold("file", LEN);

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(offsets); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_file file = by_path(path);

		fail_with = i ? EIO : EAGAIN;
		fail_from = offsets[i];
		assert_int_equal(files_run("warm", &file, 1, 0, &result),
				 -fail_with);
		fail_from = -1;
		assert_int_equal(file.error, -fail_with);
		assert_int_equal(file.fail_offset, offsets[i]);
		assert_int_equal(result.fail_offset, offsets[i]);
	}
}

static void descriptors_that_are_none(void **state)
{
	char *path = files_make("file", MIB, 1);
	int fd = open(path, O_WRONLY | O_CLOEXEC), ends[2];

	assert_int_equal(ktask_warm(-1, 0, MIB, 0), -EBADF);
	assert_int_equal(ktask_warm(fd, 0, MIB, 0), -EBADF);
	close(fd);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(ktask_warm(ends[0], 0, MIB, 0), -EINVAL);
	close(ends[0]);
	close(ends[1]);
}

/* Opened in the usual way it would wait for its other end, for ever. */
static int read_fifo(void *path)
{
	struct ktask_file file = by_path(path);
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .files = &file,
				      .nr_files = 1 };

	ktest_check(ktask_op_run(ktask_op_find("warm"), &args, NULL) ==
		    -EINVAL);
	args.flags = KTASK_FILE_DIRECT;
	ktest_check(ktask_op_run(ktask_op_find("warm"), &args, NULL) ==
		    -EINVAL);
	return 0;
}

static void nobody_waits_for_a_fifo(void **state)
{
	char *path = files_path("fifo");

	if (KTEST_TSAN)
		ktest_skip("TSAN has no threads after fork");
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(ktest_in_child(read_fifo, path), 0);
}

static int stop_early(const struct ktask_progress *progress, void *arg)
{
	return progress->units_done < progress->units_total;
}

static void it_can_be_stopped(void **state)
{
	char *path = make_cold("file", LEN);
	struct ktask_file file = by_path(path);
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .files = &file,
				      .nr_files = 1 };
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.deadline_ns = 1;
	assert_int_equal(ktask_op_run(ktask_op_find("warm"), &args, &opts),
			 -ETIMEDOUT);
	opts.deadline_ns = 0;
	opts.progress_func = stop_early;
	opts.progress_ms = 1;
	/* A job that ends before the first look is done. */
	if (ktask_op_run(ktask_op_find("warm"), &args, &opts))
		assert_true(count_cached(path) < LEN / 4096);
}

static int in_child(void *arg)
{
	struct ktask_file file = by_path(arg);

	return files_run("warm", &file, 1, 0, NULL) != 0;
}

static void in_a_forked_child(void **state)
{
	char *path = make_cold("file", LEN);
	unsigned long long before;
	size_t found;

	if (KTEST_TSAN)
		ktest_skip("TSAN has no threads after fork");
	do {
		before = taken_back();
		assert_int_equal(ktest_in_child(in_child, path), 0);
		found = count_cached(path);
	} while (found < LEN / 4096 && was_robbed(before));
	assert_int_equal(found, LEN / 4096);
}

#define WITH_FILES(test) \
	cmocka_unit_test_setup_teardown(test, files_begin, files_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILES(a_file_is_read),
		WITH_FILES(so_it_is_where_nothing_can_be_sent),
		WITH_FILES(a_range_is_read),
		WITH_FILES(many_files_are_read),
		WITH_FILES(past_the_page_cache),
		WITH_FILES(buffers_are_halves_of_huge_pages),
		WITH_FILES(one_that_fails_keeps_no_other_cold),
		WITH_FILES(reading_fails_where_it_fails),
		WITH_FILES(descriptors_that_are_none),
		WITH_FILES(nobody_waits_for_a_fifo),
		WITH_FILES(it_can_be_stopped),
		WITH_FILES(in_a_forked_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
