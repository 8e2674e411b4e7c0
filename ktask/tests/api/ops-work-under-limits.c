/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Operations where something has run out: descriptors, threads, address space,
 * permission, patience.  They are done, or say what the plain call says; contents
 * stay.
 */
#include "ktest.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "files.h"
#include "pages.h"
#include "pattern.h"

#define LEN (32 * MIB)

static void set_limit(int what, rlim_t to)
{
	struct rlimit now;

	ktest_check(!getrlimit(what, &now));
	now.rlim_cur = to;
	ktest_check(!setrlimit(what, &now));
}

/* All descriptors but @nr_free are in use. */
static void use_descriptors(int nr_free)
{
	int last = -1, fd;

	set_limit(RLIMIT_NOFILE, 64);
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		last = fd;
	ktest_check(errno == EMFILE);
	while (nr_free--)
		close(last--);
}

static int without_descriptors(void *arg)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .path = arg,
				   .len = KTASK_TO_END };
	int fd = open(arg, O_RDONLY | O_CLOEXEC);
	char *at = map_private(LEN);

	pattern_fill(at, LEN, 0);
	use_descriptors(0);
	ktest_check(files_run("warm", &file, 1, 0, NULL) == -EMFILE);
	ktest_check(file.error == -EMFILE);
	/* What is open already can be read. */
	ktest_check(ktask_warm(fd, 0, KTASK_TO_END, 0) == 0);
	ktest_check(ktask_warm(fd, 0, KTASK_TO_END, KTASK_FILE_DIRECT) == 0);
	/* Mappings cannot be asked about; the calls can be made. */
	ktest_check(ktask_unlock(at, LEN) == 0);
	ktest_check(pattern_same(at, LEN, 0));
	return 0;
}

static void no_descriptors(void **state)
{
	if (KTEST_TSAN || KTEST_ASAN)
		ktest_skip("sanitizers need descriptors of their own");
	assert_int_equal(ktest_in_child(without_descriptors,
					files_make("file", 3 * MIB, 1)),
			 0);
}

/* After so many opens one finds no descriptor: others have them all. */
static atomic_int nr_until_refused = -1;

int open(const char *path, int flags, ...)
{
	static int (*real)(const char *path, int flags, ...);
	va_list list;
	mode_t mode;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "open");
	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	if (strncmp(path, files_directory, strlen(files_directory)) ||
	    atomic_fetch_sub(&nr_until_refused, 1))
		return real(path, flags, mode);
	errno = EMFILE;
	return -1;
}

#define NR_FILES 20

/* Of those that look at the files and of those that read, each one in turn. */
static void a_descriptor_that_others_have(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_file files[NR_FILES];

	for (int until = 0; until <= 2 * NR_FILES; until++) {
		char *from = files_make("from", 5000, 1);

		for (unsigned i = 0; i < NR_FILES; i++)
			files[i] = (struct ktask_file){
				.struct_size = sizeof(struct ktask_file),
				.path = from,
				.len = 5000
			};
		atomic_store(&nr_until_refused, until);
		assert_int_equal(files_run("warm", files, NR_FILES, 0, &result),
				 0);
		atomic_store(&nr_until_refused, -1);
		assert_int_equal(result.units, NR_FILES * 5000);
		for (unsigned i = 0; i < NR_FILES; i++)
			assert_int_equal(files[i].error, 0);
	}
}

/* File systems that do not what they should: none of it may last for ever. */
static atomic_bool refuses_direct;

ssize_t pread(int fd, void *buf, size_t len, off_t pos)
{
	static ssize_t (*real)(int fd, void *buf, size_t len, off_t pos);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pread");
	if (!atomic_load(&refuses_direct))
		return real(fd, buf, len, pos);
	errno = EINVAL;
	return -1;
}

int fcntl(int fd, int what, ...)
{
	static int (*real)(int fd, int what, ...);
	va_list list;
	long arg;

	va_start(list, what);
	arg = va_arg(list, long);
	va_end(list);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fcntl");
	if (what != F_SETFL || !atomic_load(&refuses_direct))
		return real(fd, what, arg);
	errno = EPERM;
	return -1;
}

static int that_stays_direct(void *arg)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .path = arg,
				   .len = KTASK_TO_END };

	atomic_store(&refuses_direct, true);
	ktest_check(files_run("warm", &file, 1, KTASK_FILE_DIRECT, NULL) ==
		    -EINVAL);
	return 0;
}

static void what_can_only_be_read_directly_and_cannot(void **state)
{
	char *path = files_make("file", MIB, 1);
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);

	if (fd < 0)
		ktest_skip("no direct reads here");
	close(fd);
	if (KTEST_TSAN)
		ktest_skip("TSAN has no threads after fork");
	assert_int_equal(ktest_in_child(that_stays_direct, path), 0);
}

static int without_threads(void *arg)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .path = arg,
				   .len = KTASK_TO_END };
	struct ktask_result result = KTASK_RESULT_INIT;

	set_limit(RLIMIT_NPROC, 1);
	ktest_check(files_run("warm", &file, 1, 0, &result) == 0);
	ktest_check(result.units == 9 * MIB);
	return 0;
}

static void no_threads(void **state)
{
	if (KTEST_TSAN)
		ktest_skip("TSAN has no threads after fork");
	assert_int_equal(
		ktest_in_child(without_threads, files_make("from", 9 * MIB, 1)),
		0);
}

static int without_address_space(void *arg)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .path = arg,
				   .len = KTASK_TO_END };

	/* Nothing can be mapped or allocated any more. */
	set_limit(RLIMIT_AS, 1);
	ktest_check(files_run("warm", &file, 1, KTASK_FILE_DIRECT, NULL) == 0);
	return 0;
}

static void no_address_space(void **state)
{
	if (KTEST_TSAN || KTEST_ASAN)
		ktest_skip("sanitizers need address space of their own");
	assert_int_equal(ktest_in_child(without_address_space,
					files_make("from", 9 * MIB + 5, 1)),
			 0);
}

/* The file behind a mapping ends before the mapping does. */
static void a_truncated_file_under_a_mapping(void **state)
{
	int fd = memory_file(LEN);
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	pattern_fill(at, LEN, 0);
	assert_int_equal(ftruncate(fd, LEN / 2), 0);
	assert_int_equal(ktask_unlock(at, LEN), 0);
	assert_true(pattern_same(at, LEN / 2, 0));
	munmap(at, LEN);
	close(fd);
}

#define WITH_FILES(test) \
	cmocka_unit_test_setup_teardown(test, files_begin, files_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILES(no_descriptors),
		WITH_FILES(a_descriptor_that_others_have),
		WITH_FILES(what_can_only_be_read_directly_and_cannot),
		WITH_FILES(no_threads),
		WITH_FILES(no_address_space),
		WITH_FILES(a_truncated_file_under_a_mapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
