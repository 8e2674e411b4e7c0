/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Operations where something has run out: descriptors, threads, address space,
 * permission.  They are done, or say what the plain call says; contents stay.
 */
#include "ktest.h"

#include <sys/resource.h>

#include "files.h"
#include "pages.h"
#include "pattern.h"

#define LEN (32 * MIB)

static void limit(int what, rlim_t to)
{
	struct rlimit now;

	ktest_check(!getrlimit(what, &now));
	now.rlim_cur = to;
	ktest_check(!setrlimit(what, &now));
}

/* All descriptors but @spare are in use. */
static void use_descriptors(int spare)
{
	int last = -1, fd;

	limit(RLIMIT_NOFILE, 64);
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		last = fd;
	ktest_check(errno == EMFILE);
	while (spare--)
		close(last--);
}

static int without_descriptors(void *arg)
{
	struct ktask_file file = { .path = arg, .len = KTASK_TO_END };
	int fd = open(arg, O_RDONLY | O_CLOEXEC);
	char *at = map_private(LEN);
	unsigned long node = 1;

	pattern_fill(at, LEN, 0);
	use_descriptors(0);
	ktest_check(files_run("warm", &file, 1, 0, NULL) == -EMFILE);
	ktest_check(file.error == -EMFILE);
	/* What is open already can be read. */
	ktest_check(ktask_warm(fd, 0, KTASK_TO_END, 0) == 0);
	ktest_check(ktask_warm(fd, 0, KTASK_TO_END, KTASK_FILE_DIRECT) == 0);
	ktest_check(ktask_sync(fd, 0, KTASK_TO_END, 0) == 0);
	/* Mappings cannot be asked about; the calls can be made. */
	ktask_collapse(at, LEN, 0);
	ktask_migrate(at, LEN, &node, 1, 0);
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

static int without_threads(void *arg)
{
	char **paths = arg;
	struct ktask_file file = { .path = paths[0],
				   .dst_path = paths[1],
				   .len = KTASK_TO_END };
	struct ktask_result result = KTASK_RESULT_INIT;

	limit(RLIMIT_NPROC, 1);
	ktest_check(files_run("copy_file", &file, 1, 0, &result) == 0);
	ktest_check(result.units == 9 * MIB);
	return 0;
}

static void no_threads(void **state)
{
	char *paths[2] = { files_make("from", 9 * MIB, 1),
			   files_make("to", 0, 0) };

	if (KTEST_TSAN)
		ktest_skip("TSAN has no threads after fork");
	assert_int_equal(ktest_in_child(without_threads, paths), 0);
	files_check(paths[1], 0, 9 * MIB, 0, 1);
}

static int without_address_space(void *arg)
{
	char **paths = arg;
	struct ktask_file file = { .path = paths[0],
				   .dst_path = paths[1],
				   .len = KTASK_TO_END };

	/* Nothing can be mapped or allocated any more. */
	limit(RLIMIT_AS, 1);
	ktest_check(files_run("warm", &file, 1, KTASK_FILE_DIRECT, NULL) == 0);
	ktest_check(files_run("copy_file", &file, 1, KTASK_FILE_DIRECT, NULL) ==
		    0);
	ktest_check(files_run("sync", &file, 1, 0, NULL) == 0);
	return 0;
}

static void no_address_space(void **state)
{
	char *paths[2] = { files_make("from", 9 * MIB + 5, 1),
			   files_make("to", 0, 0) };

	if (KTEST_TSAN || KTEST_ASAN)
		ktest_skip("sanitizers need address space of their own");
	assert_int_equal(ktest_in_child(without_address_space, paths), 0);
	files_check(paths[1], 0, 9 * MIB + 5, 0, 1);
}

/* The file behind a mapping ends before the mapping does. */
static void a_truncated_file_under_a_mapping(void **state)
{
	int fd = memory_file(LEN);
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned long node = 1;
	int plain;

	assert_ptr_not_equal(at, MAP_FAILED);
	pattern_fill(at, LEN, 0);
	assert_int_equal(ftruncate(fd, LEN / 2), 0);
	plain = madvise(at, LEN, 25) ? -errno : 0;
	assert_int_equal(ktask_collapse(at, LEN, 0), plain);
	/* What is not there cannot be elsewhere. */
	plain = ktask_migrate(at, LEN / 2, &node, 1, 0);
	assert_int_equal(ktask_migrate(at, LEN, &node, 1, 0), plain);
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
		WITH_FILES(no_threads),
		WITH_FILES(no_address_space),
		WITH_FILES(a_truncated_file_under_a_mapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
