/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The administrator's file counts only if nobody else could have written it,
 * and whatever lies in its place holds nothing up.
 */
#include "ktest.h"
#include "tree.h"

#include "user/limits/config.h"

#define FILE_TEXT "cap_percent = 50\nmax_threads = 3\n"

static struct tree tree;
static char path[128];
static struct config_file file;

static int make_file(void **state)
{
	tree_begin(&tree);
	snprintf(path, sizeof(path), "%s/etc/ktask.conf", tree.root);
	tree_put(&tree, "/etc/ktask.conf", FILE_TEXT);
	return 0;
}

static int remove_file(void **state)
{
	tree_end(&tree);
	return 0;
}

static void read_file(void)
{
	config_read(path, geteuid(), &file);
}

#define assert_refused()                                \
	do {                                            \
		read_file();                            \
		assert_non_null(file.refused);          \
		assert_int_equal(file.cap_percent, -1); \
		assert_int_equal(file.max_threads, -1); \
	} while (0)

static void a_safe_file_is_believed(void **state)
{
	read_file();
	assert_null(file.refused);
	assert_int_equal(file.cap_percent, 50);
	assert_int_equal(file.max_threads, 3);
	assert_int_equal(chmod(path, 0400), 0);
	read_file();
	assert_int_equal(file.cap_percent, 50);
}

static void no_file_says_nothing(void **state)
{
	unlink(path);
	read_file();
	assert_null(file.refused);
	assert_int_equal(file.cap_percent, -1);
	tree_remove(&tree, "/etc");
	read_file();
	assert_null(file.refused);
}

static void others_must_not_be_able_to_write(void **state)
{
	assert_int_equal(chmod(path, 0664), 0);
	assert_refused();
	assert_int_equal(chmod(path, 0646), 0);
	assert_refused();
	assert_int_equal(chmod(path, 0644), 0);
	read_file();
	assert_null(file.refused);
}

static void it_must_belong_to_the_owner(void **state)
{
	config_read(path, geteuid() + 1, &file);
	assert_non_null(file.refused);
	assert_int_equal(file.cap_percent, -1);
	if (geteuid())
		ktest_skip("a file can be given away by root only");
	assert_int_equal(chown(path, 12345, 0), 0);
	assert_refused();
}

static void links_are_not_followed(void **state)
{
	char other[160];

	snprintf(other, sizeof(other), "%s.real", path);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_refused();
}

static void it_must_be_a_file(void **state)
{
	unlink(path);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_refused();
	unlink(path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_refused();
}

static int read_as_another_user(void *arg)
{
	ktest_check(!setresuid(65534, 65534, 65534));
	config_read(path, 0, &file);
	ktest_check(file.refused && file.cap_percent == -1);
	/* A directory that may not even be searched. */
	config_read(arg, 0, &file);
	ktest_check(file.refused && file.cap_percent == -1);
	return 0;
}

static void what_may_not_be_read_is_told(void **state)
{
	char deeper[160];

	if (geteuid())
		ktest_skip("a file can be hidden by root only");
	snprintf(deeper, sizeof(deeper), "%s/etc/deep/ktask.conf", tree.root);
	tree_put(&tree, "/etc/deep/ktask.conf", FILE_TEXT);
	*strrchr(deeper, '/') = '\0';
	assert_int_equal(chmod(deeper, 0700), 0);
	strcat(deeper, "/ktask.conf");
	assert_int_equal(chmod(tree.root, 0755), 0);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(ktest_in_child(read_as_another_user, deeper), 0);
}

static void it_must_not_be_long(void **state)
{
	int fd = open(path, O_WRONLY | O_APPEND);
	int fds = tree_fds();

	assert_int_equal(ftruncate(fd, CONFIG_BYTES_MAX + 1), 0);
	assert_refused();
	assert_int_equal(ftruncate(fd, CONFIG_BYTES_MAX), 0);
	read_file();
	assert_null(file.refused);
	assert_int_equal(file.cap_percent, 50);
	assert_int_equal(tree_fds(), fds);
	close(fd);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)

KTEST_MAIN(T(a_safe_file_is_believed), T(no_file_says_nothing),
	   T(others_must_not_be_able_to_write), T(it_must_belong_to_the_owner),
	   T(links_are_not_followed), T(it_must_be_a_file),
	   T(what_may_not_be_read_is_told), T(it_must_not_be_long))
