/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The file of the autotune cache: only the user's own is believed, whatever lies
 * in its place harms nobody, writers do not lose each other's entries and may
 * be killed, and where no file can be had that is all that happens.
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "ktest.h"
#include "tree.h"

#include "util/file.h"
#include "user/history/autotune.h"

#define MACHINE "Some CPU; 8 CPUs; 2 nodes; Linux 6.1; ktask 9"

static struct tree tree;
static struct autotune_cache cache;
static char path[256];

static int make_cache(void **state)
{
	tree_begin(&tree);
	setenv("XDG_CACHE_HOME", tree.root, 1);
	path[0] = '\0';
	return 0;
}

static int remove_cache(void **state)
{
	tree_end(&tree);
	unsetenv("XDG_CACHE_HOME");
	file_root = "";
	return 0;
}

static struct autotune_entry entry_named(const char *name)
{
	struct autotune_entry entry = { .threads = 3, .max_threads = 8 };

	snprintf(entry.name, sizeof(entry.name), "%s", name);
	return entry;
}

static int put_waiting(const char *name, unsigned wait_ms)
{
	struct autotune_entry entry = entry_named(name);

	return autotune_write(&entry, MACHINE, wait_ms, path, sizeof(path));
}

static int put_entry(const char *name)
{
	return put_waiting(name, 0);
}

static unsigned nr_read(void)
{
	autotune_read(false, MACHINE, &cache);
	return cache.nr;
}

static void a_file_is_kept(void **state)
{
	struct stat st;

	assert_int_equal(nr_read(), 0);
	assert_int_equal(put_entry("a"), 0);
	assert_int_equal(put_entry("b"), 0);
	assert_int_equal(put_entry("a"), 0);
	assert_int_equal(nr_read(), 2);
	assert_string_equal(cache.entries[1].name, "a");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 022, 0);
	assert_false(autotune_read(false, "another; Linux", &cache));
}

static void the_kind_of_machine_names_the_file(void **state)
{
	struct autotune_entry entry = entry_named("a");
	char other[256];

	assert_int_equal(put_entry("a"), 0);
	/* Another kernel, the same file; another CPU, another file. */
	assert_int_equal(autotune_write(&entry,
					"Some CPU; 8 CPUs; 2 nodes; Linux 7", 0,
					other, sizeof(other)),
			 0);
	assert_string_equal(other, path);
	assert_int_equal(nr_read(), 0);
	assert_int_equal(autotune_write(&entry, "Other; Linux 7", 0, other,
					sizeof(other)),
			 0);
	assert_string_not_equal(other, path);
}

static void only_a_safe_file_is_believed(void **state)
{
	char other[300], directory[128];

	assert_int_equal(put_entry("a"), 0);
	chmod(path, 0664);
	assert_int_equal(nr_read(), 0);
	chmod(path, 0646);
	assert_int_equal(nr_read(), 0);
	chmod(path, 0600);
	assert_int_equal(nr_read(), 1);
	snprintf(directory, sizeof(directory), "%s/ktask", tree.root);
	chmod(directory, 0777);
	assert_int_equal(nr_read(), 0);
	assert_int_equal(put_entry("b"), -EPERM);
	chmod(directory, 0755);
	snprintf(other, sizeof(other), "%s.real", path);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(nr_read(), 0);
	/* A link is replaced, what it leads to is not touched. */
	assert_int_equal(put_entry("b"), 0);
	assert_int_equal(nr_read(), 1);
	if (geteuid())
		ktest_skip("a file can be given away by root only");
	assert_int_equal(chown(path, 12345, 0), 0);
	assert_int_equal(nr_read(), 0);
	assert_int_equal(chown(directory, 12345, 0), 0);
	assert_int_equal(put_entry("c"), -EPERM);
}

static void a_base_of_others_gets_no_directory(void **state)
{
	char directory[128];

	if (geteuid())
		ktest_skip("a directory can be given away by root only");
	assert_int_equal(chown(tree.root, 12345, 0), 0);
	assert_int_equal(put_entry("a"), -EPERM);
	snprintf(directory, sizeof(directory), "%s/ktask", tree.root);
	assert_int_equal(access(directory, F_OK), -1);
	/* Nor is a base made there, which would be root's in a user's home. */
	snprintf(directory, sizeof(directory), "%s/cache", tree.root);
	setenv("XDG_CACHE_HOME", directory, 1);
	assert_int_equal(autotune_verify(MACHINE, path, sizeof(path)), -EPERM);
	assert_int_equal(put_entry("a"), -EPERM);
	assert_int_equal(access(directory, F_OK), -1);
}

/* In place of the file, of the lock, of what is being written. */
static void other_things_instead_of_files(void **state)
{
	static const char *const suffixes[] = { "", ".new", "/../lock" };
	char occupied[300];
	int fds;

	assert_int_equal(put_entry("a"), 0);
	fds = tree_fds();
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(suffixes); i++) {
		snprintf(occupied, sizeof(occupied), "%.*s%s",
			 i == 2 ? (int)(strrchr(path, '/') - path)
				: (int)strlen(path),
			 path, i == 2 ? "/lock" : suffixes[i]);
		unlink(occupied);
		assert_int_equal(mkfifo(occupied, 0600), 0);
		nr_read();
		assert_int_equal(put_entry("b"), i == 2 ? -EPERM : 0);
		unlink(occupied);
		assert_int_equal(mkdir(occupied, 0700), 0);
		nr_read();
		assert_true(put_entry("b") < 0);
		assert_int_equal(rmdir(occupied), 0);
		assert_int_equal(symlink("/etc/passwd", occupied), 0);
		nr_read();
		assert_int_equal(put_entry("b"), i == 2 ? -ELOOP : 0);
		unlink(occupied);
	}
	assert_int_equal(put_entry("b"), 0);
	assert_int_equal(nr_read(), 1);
	assert_int_equal(tree_fds(), fds);
}

static void put_bytes(const void *bytes, size_t size)
{
	tree_put_bytes(&tree, path + strlen(tree.root), bytes, size);
}

static void garbage_is_begun_anew(void **state)
{
	uint64_t seed = ktest_seed();
	static char bytes[3 * AUTOTUNE_BYTES];

	assert_int_equal(put_entry("a"), 0);
	for (int round = 0; round < 300; round++) {
		size_t size = ktest_random_below(
			&seed, round % 3 ? 200 : sizeof(bytes));

		for (size_t i = 0; i < size; i++)
			bytes[i] = (char)ktest_random(&seed);
		put_bytes(bytes, size);
		assert_int_equal(nr_read(), 0);
		assert_int_equal(put_entry("b"), 0);
		assert_int_equal(nr_read(), 1);
	}
	put_bytes("", 0);
	assert_int_equal(nr_read(), 0);
}

static void nowhere_to_put_it(void **state)
{
	char base[128];

	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	assert_true(put_entry("a") < 0);
	assert_int_equal(nr_read(), 0);
	setenv("XDG_CACHE_HOME", "/proc", 1);
	assert_true(put_entry("a") < 0);
	snprintf(base, sizeof(base), "%s/no/such", tree.root);
	setenv("XDG_CACHE_HOME", base, 1);
	assert_int_equal(put_entry("a"), -ENOENT);
	assert_int_equal(nr_read(), 0);
	/* One missing directory is made. */
	snprintf(base, sizeof(base), "%s/no", tree.root);
	setenv("XDG_CACHE_HOME", base, 1);
	assert_int_equal(put_entry("a"), 0);
	assert_int_equal(nr_read(), 1);
}

static int as_a_user(void *arg)
{
	char home[128];

	snprintf(home, sizeof(home), "%s/home", tree.root);
	ktest_check(!mkdir(home, 0700));
	if (!geteuid())
		ktest_check(!chown(home, 65531, 0) && !chmod(tree.root, 0755) &&
			    !setresuid(65531, 65531, 65531));
	/* Relative: ignored, as the specification wants. */
	setenv("XDG_CACHE_HOME", "relative", 1);
	unsetenv("HOME");
	ktest_check(put_entry("a") == -ENOENT);
	setenv("HOME", "", 1);
	ktest_check(put_entry("a") == -ENOENT);
	setenv("HOME", "also/relative", 1);
	ktest_check(put_entry("a") == -ENOENT);
	setenv("HOME", home, 1);
	ktest_check(!put_entry("a"));
	ktest_check(strstr(path, "/home/.cache/ktask/threads."));
	ktest_check(nr_read() == 1);
	ktest_check(!chmod(path, 0));
	ktest_check(nr_read() == 0);
	ktest_check(!chmod(path, 0600));
	snprintf(home, sizeof(home), "%s/home/.cache/ktask", tree.root);
	ktest_check(!chmod(home, 0500));
	ktest_check(put_entry("b") == -EACCES);
	ktest_check(nr_read() == 1);
	return 0;
}

static void users_have_it_below_their_home(void **state)
{
	assert_int_equal(ktest_in_child(as_a_user, NULL), 0);
}

static void root_has_it_for_everybody(void **state)
{
	if (geteuid())
		ktest_skip("needs root");
	file_root = tree.root;
	setenv("XDG_CACHE_HOME", "", 1);
	tree_put(&tree, "/var/cache/x", "");
	assert_int_equal(put_entry("a"), 0);
	assert_non_null(strstr(path, "/var/cache/ktask/threads."));
	setenv("XDG_CACHE_HOME", tree.root, 1);
	assert_int_equal(nr_read(), 0);
	assert_true(autotune_read(true, MACHINE, &cache));
	assert_int_equal(cache.nr, 1);
}

/* The limit's signal would end the program. */
static int with_a_small_limit(void *arg)
{
	struct rlimit limit = { 8, 8 };

	ktest_check(!put_entry("a"));
	ktest_check(!setrlimit(RLIMIT_FSIZE, &limit));
	ktest_check(put_entry("b") == -EFBIG);
	ktest_check(nr_read() == 1);
	return 0;
}

static void a_limit_on_files_is_no_signal(void **state)
{
	assert_int_equal(ktest_in_child(with_a_small_limit, NULL), 0);
}

static bool takes_nothing;

ssize_t write(int fd, const void *buf, size_t len)
{
	static ssize_t (*real)(int fd, const void *buf, size_t len);

	if (takes_nothing)
		return 0;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	return real(fd, buf, len);
}

static int with_a_disk_that_takes_nothing(void *unused)
{
	ktest_check(!put_entry("a"));
	takes_nothing = true;
	ktest_check(put_entry("b") == -EIO);
	ktest_check(nr_read() == 1);
	return 0;
}

static void a_disk_that_takes_nothing_is_given_up(void **state)
{
	assert_int_equal(ktest_in_child(with_a_disk_that_takes_nothing, NULL),
			 0);
}

static void a_full_or_read_only_disk_leaves_the_old_file(void **state)
{
	char fill[128];
	int fd;

	if (mount("tmpfs", tree.root, "tmpfs", 0, "size=16k,mode=700"))
		ktest_skip("no file system may be mounted: %s",
			   strerror(errno));
	assert_int_equal(put_entry("a"), 0);
	snprintf(fill, sizeof(fill), "%s/fill", tree.root);
	fd = open(fill, O_WRONLY | O_CREAT, 0600);
	while (write(fd, fill, 128) > 0)
		;
	close(fd);
	assert_int_equal(put_entry("b"), -ENOSPC);
	assert_int_equal(nr_read(), 1);
	unlink(fill);
	assert_int_equal(put_entry("b"), 0);
	assert_int_equal(nr_read(), 2);
	assert_int_equal(
		mount(NULL, tree.root, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(put_entry("c"), -EROFS);
	assert_int_equal(nr_read(), 2);
	assert_int_equal(umount(tree.root), 0);
}

static void a_held_lock_is_not_waited_for(void **state)
{
	char lock[300];
	uint64_t start_ns;
	int fd;

	assert_int_equal(put_entry("a"), 0);
	snprintf(lock, sizeof(lock), "%s/ktask/lock", tree.root);
	fd = open(lock, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(put_entry("b"), -EBUSY);
	start_ns = ktest_now_ns();
	assert_int_equal(put_waiting("b", 50), -EBUSY);
	assert_true(ktest_now_ns() - start_ns >= 50000000);
	assert_int_equal(nr_read(), 1);
	close(fd);
	assert_int_equal(put_entry("b"), 0);
}

#define WRITERS 6
#define NAMES 8

static pid_t start_writer(unsigned writer)
{
	pid_t pid = fork();
	char name[AUTOTUNE_NAME];

	if (pid)
		return pid;
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "w%u-%u", writer, i);
		if (put_waiting(name, 20000))
			_exit(1);
	}
	_exit(0);
}

/* Whenever somebody looks the file is whole. */
static void writers_do_not_lose_each_other(void **state)
{
	unsigned most = 0, running = WRITERS;
	int status;

	for (unsigned i = 0; i < WRITERS; i++)
		assert_true(start_writer(i) > 0);
	while (running) {
		unsigned nr = nr_read();

		assert_true(nr >= most);
		most = nr;
		while (waitpid(-1, &status, WNOHANG) > 0) {
			assert_int_equal(status, 0);
			running--;
		}
	}
	assert_int_equal(nr_read(), WRITERS * NAMES);
}

static void killed_writers_harm_nobody(void **state)
{
	uint64_t seed = ktest_seed();
	unsigned most = 0;

	for (int round = 0; round < 200; round++) {
		pid_t pid = start_writer((unsigned)round % WRITERS);
		unsigned nr;

		usleep((useconds_t)ktest_random_below(&seed, 1500));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		nr = nr_read();
		assert_true(nr >= most);
		most = nr;
	}
	assert_int_equal(put_entry("last"), 0);
	assert_true(nr_read() > most);
}

/* ---- whether it could be written ---- */

static int verify_cache(void)
{
	return autotune_verify(MACHINE, path, sizeof(path));
}

static void verifying_makes_nothing(void **state)
{
	char directory[128];

	snprintf(directory, sizeof(directory), "%s/new", tree.root);
	setenv("XDG_CACHE_HOME", directory, 1);
	assert_int_equal(verify_cache(), 0);
	assert_int_equal(strncmp(path, directory, strlen(directory)), 0);
	assert_int_equal(access(directory, F_OK), -1);
	assert_int_equal(put_entry("a"), 0);
	assert_int_equal(verify_cache(), 0);
	assert_int_equal(nr_read(), 1);
}

static void verifying_finds_what_writing_would(void **state)
{
	char directory[128];

	snprintf(directory, sizeof(directory), "%s/new/deep", tree.root);
	setenv("XDG_CACHE_HOME", directory, 1);
	assert_int_equal(verify_cache(), -ENOENT);
	assert_int_equal(put_entry("a"), -ENOENT);
	setenv("XDG_CACHE_HOME", "/dev/null/cache", 1);
	assert_int_equal(verify_cache(), -ENOTDIR);
	assert_int_equal(put_entry("a"), -ENOTDIR);
	snprintf(directory, sizeof(directory), "%s/ktask", tree.root);
	setenv("XDG_CACHE_HOME", tree.root, 1);
	assert_int_equal(put_entry("a"), 0);
	chmod(directory, 0777);
	assert_int_equal(verify_cache(), -EPERM);
	assert_int_equal(put_entry("a"), -EPERM);
}

static void a_base_may_end_in_slashes(void **state)
{
	char base[256];

	snprintf(base, sizeof(base), "%s/cache//", tree.root);
	setenv("XDG_CACHE_HOME", base, 1);
	assert_int_equal(verify_cache(), 0);
	assert_int_equal(put_entry("a"), 0);
	assert_int_equal(verify_cache(), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_cache, remove_cache)

KTEST_MAIN(T(a_file_is_kept), T(verifying_makes_nothing),
	   T(verifying_finds_what_writing_would), T(a_base_may_end_in_slashes),
	   T(the_kind_of_machine_names_the_file),
	   T(only_a_safe_file_is_believed),
	   T(a_base_of_others_gets_no_directory),
	   T(other_things_instead_of_files), T(garbage_is_begun_anew),
	   T(nowhere_to_put_it), T(users_have_it_below_their_home),
	   T(root_has_it_for_everybody), T(a_limit_on_files_is_no_signal),
	   T(a_disk_that_takes_nothing_is_given_up),
	   T(a_full_or_read_only_disk_leaves_the_old_file),
	   T(a_held_lock_is_not_waited_for), T(writers_do_not_lose_each_other),
	   T(killed_writers_harm_nobody))
