/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * In the last bytes of a path that its owner says (nofollow) no symbolic link is
 * followed, be it a file or a directory; before them all are.
 */
#include "ktest.h"

#include "files.h"
#include "refuse.h"

#define NO_FILTER 70
#define LEN (3 * MIB + 5)

/* A directory with a file, a link to the file, a link to the directory, and one to
 * nowhere. */
static void lay_out(void)
{
	char *in = files_path("in");

	assert_int_equal(mkdir(in, 0700), 0);
	files_make("in/file", LEN, 1);
	assert_int_equal(symlink("file", files_path("in/link")), 0);
	assert_int_equal(symlink("in", files_path("through")), 0);
	assert_int_equal(symlink("nowhere", files_path("in/dangling")), 0);
}

static int warm_file(const char *path, unsigned nofollow)
{
	struct ktask_file file = { .struct_size = sizeof(file),
				   .path = path,
				   .nofollow = nofollow,
				   .len = KTASK_TO_END };
	int error = files_run("warm", &file, 1, 0, NULL);

	ktest_check(file.error == error);
	ktest_check(error || file.size == LEN);
	return error;
}

static void check_paths(void)
{
	static const struct {
		const char *name, *last;
		int error;
	} cases[] = {
		{ "in/file", "", 0 },
		{ "in/file", "file", 0 },
		{ "in/file", "in/file", 0 },
		{ "in//file", "in//file", 0 },
		{ "in/link", "", 0 },
		{ "in/link", "link", -ELOOP },
		{ "in/link", "in/link", -ELOOP },
		{ "in/dangling", "dangling", -ELOOP },
		{ "in/nosuch", "nosuch", -ENOENT },
		{ "nosuch/file", "nosuch/file", -ENOENT },
		{ "nosuch/file", "file", -ENOENT },
		{ "through/file", "", 0 },
		{ "through/file", "file", 0 },
		{ "through/file", "through/file", -ENOTDIR },
		{ "through/link", "link", -ELOOP },
		{ "in/file/more", "more", -ENOTDIR },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		ktest_check(warm_file(files_path(cases[i].name),
				      (unsigned)strlen(cases[i].last)) ==
			    cases[i].error);
	/* All of it, and more than there is. */
	ktest_check(warm_file(files_path("in/file"), UINT32_MAX) == 0);
	ktest_check(warm_file(files_path("in/link"), UINT32_MAX) == -ELOOP);
	ktest_check(chdir(files_directory) == 0);
	ktest_check(warm_file("in/file", 7) == 0);
	ktest_check(warm_file("through/file", 12) == -ENOTDIR);
	ktest_check(warm_file("./through/file", 4) == 0);
	ktest_check(chdir("/") == 0);
}

static void in_paths(void **state)
{
	lay_out();
	check_paths();
}

/* Before Linux 5.6, and behind filters. */
static int check_without_openat2(void *arg)
{
	if (!refuse_call(SYS_openat2, 0, (unsigned)AT_FDCWD, (unsigned)AT_FDCWD,
			 *(int *)arg))
		return NO_FILTER;
	ktest_check(syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0) < 0 &&
		    errno == *(int *)arg);
	check_paths();
	return 0;
}

static void in_paths_by_older_kernels(void **state)
{
	static int errors[] = { ENOSYS, EPERM };

	lay_out();
	for (int i = 0; i < 2; i++) {
		int status = ktest_in_child(check_without_openat2, &errors[i]);

		if (status == NO_FILTER << 8)
			ktest_skip("no seccomp filters here");
		assert_int_equal(status, 0);
	}
}

#define WITH_FILES(test) \
	cmocka_unit_test_setup_teardown(test, files_begin, files_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: its child has helpers of its own. */
		WITH_FILES(in_paths_by_older_kernels),
		WITH_FILES(in_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
