/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whatever stands under the name of the registry of permits, jobs are done: a file
 * of somebody else, too short, writable by others, full of garbage, a link.
 *
 * As root, on the registry of an unprivileged user that the test becomes.
 */
#include "ktest.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "user/limits/permits.h"
#include "user/limits/registry.h"

#define USER 65533
#define REGISTRY "/dev/shm/ktask-slots-65533.0"
#define NAMES 8
#define TABLE_BYTES (1 << 20)

static int count_units(void *start, void *end, void *arg)
{
	__atomic_add_fetch((size_t *)arg, (size_t)((char *)end - (char *)start),
			   __ATOMIC_RELAXED);
	return 0;
}

static int job_as_user(void *arg)
{
	size_t units = 0;
	DEFINE_KTASK_CTL(ctl, count_units, &units, 1);

	ktest_check(!setresgid(USER, USER, USER));
	ktest_check(!setresuid(USER, USER, USER));
	for (int i = 0; i < 20; i++) {
		units = 0;
		ktest_check(!ktask_run(NULL, 100000, &ctl));
		ktest_check(units == 100000);
	}
	return 0;
}

static void remove_registries(void)
{
	char path[] = REGISTRY;

	for (int n = 0; n < NAMES; n++) {
		path[sizeof(path) - 2] = (char)('0' + n);
		unlink(path);
	}
}

static int as_root(void **state)
{
	remove_registries();
	return 0;
}

static int clean_up(void **state)
{
	remove_registries();
	return 0;
}

static void need_root(void)
{
	if (geteuid())
		ktest_skip("needs root to become another user");
}

static void put_file(const char *path, size_t bytes, mode_t mode, uid_t owner,
		     bool random)
{
	uint64_t seed = ktest_seed();
	int fd;

	/* A registry of that user's, where tests share the directory. */
	unlink(path);
	fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
	assert_true(fd >= 0);
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = random ? ktest_random(&seed) : 0;

		assert_int_equal(write(fd, &word, 8), 8);
	}
	assert_int_equal(fchown(fd, owner, owner), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* The size of a registry that the library itself makes. */
static size_t registry_bytes(void)
{
	struct stat st;

	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
	assert_int_equal(stat(REGISTRY, &st), 0);
	assert_int_equal(st.st_uid, USER);
	assert_int_equal(st.st_mode & 0777, 0644);
	remove_registries();
	return (size_t)st.st_size;
}

static void a_registry_is_made_by_the_first_job(void **state)
{
	need_root();
	assert_true(registry_bytes() < TABLE_BYTES);
}

static void files_of_others_are_stepped_over(void **state)
{
	struct stat st;
	char path[] = REGISTRY;

	need_root();
	put_file(REGISTRY, 4096, 0666, 0, true);
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
	path[sizeof(path) - 2] = '1';
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, USER);
}

static void all_names_taken_is_no_error(void **state)
{
	char path[] = REGISTRY;

	need_root();
	for (int n = 0; n < NAMES; n++) {
		path[sizeof(path) - 2] = (char)('0' + n);
		put_file(path, 8, 0600, 0, false);
	}
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
}

static void garbage_of_any_size_is_stepped_over(void **state)
{
	size_t bytes;

	need_root();
	bytes = registry_bytes();
	put_file(REGISTRY, 64, 0644, USER, true);
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
	remove_registries();
	put_file(REGISTRY, bytes, 0644, USER, true);
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
	remove_registries();
	put_file(REGISTRY, bytes, 0666, USER, false);
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
}

static void links_are_not_followed(void **state)
{
	need_root();
	assert_int_equal(symlink("/etc/passwd", REGISTRY), 0);
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
	remove_registries();
	assert_int_equal(mkfifo(REGISTRY, 0666), 0);
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
}

#define LIAR 65532
#define LIES "/dev/shm/ktask-slots-65532.0"

static int make_registry_of_liar(void *arg)
{
	struct ktask_limit limit = KTASK_LIMIT_INIT;

	ktest_check(!setresuid(LIAR, LIAR, LIAR));
	ktask_limits(&limit, 1);
	return 0;
}

/* All behind the number that says what it is. */
static void fill_with_garbage(const char *path)
{
	uint64_t seed = ktest_seed();
	int fd = open(path, O_RDWR);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	for (off_t pos = 8; pos + 8 <= st.st_size; pos += 8) {
		uint64_t word = ktest_random(&seed);

		assert_int_equal(pwrite(fd, &word, 8, pos), 8);
	}
	close(fd);
}

/* What a job of another user would look at is there, and is in order. */
static int read_jobs(void *arg)
{
	struct ktask_job_info jobs[1024] = { KTASK_JOB_INFO_INIT };
	unsigned nr = ktask_jobs(jobs, 1024, NULL);

	for (unsigned i = 0; i < nr && i < 1024; i++)
		ktest_check(strnlen(jobs[i].name, sizeof(jobs[i].name)) <
			    sizeof(jobs[i].name));
	return 0;
}

/* Other users read our registry: what stands there must not stop their jobs. */
static void lies_of_other_users_stop_nobody(void **state)
{
	need_root();
	put_file(REGISTRY, 64, 0644, USER, true);
	unlink(LIES);
	assert_int_equal(ktest_in_child(make_registry_of_liar, NULL), 0);
	fill_with_garbage(LIES);
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
	assert_int_equal(ktest_in_child(read_jobs, NULL), 0);
	unlink(LIES);
}

/* ---- who writes meanwhile ---- */

#define SHARES (KTEST_ASAN || KTEST_TSAN ? 50000 : 3000000)

/* How many entries there are, and what the job wants, over and over. */
static void change_for_ever(struct registry *registry, int entry)
{
	for (;;) {
		kt_store(&registry->head.nr_entries, UINT32_MAX);
		kt_store(&registry->head.entries[entry].wanted, UINT32_MAX);
		kt_store(&registry->head.nr_entries, 0u);
		kt_store(&registry->head.nr_entries, 1u);
	}
}

static int share_what_changes(void *arg)
{
	uint64_t now_ns = ktest_now_ns(), until_ns;
	struct ktask_limit limit = KTASK_LIMIT_INIT;
	struct registry *registry;
	int entry;
	pid_t pid;

	ktest_check(!setresuid(USER, USER, USER));
	ktask_limits(&limit, 1);
	registry = registry_open();
	ktest_check(registry && permits_shared());
	/* More than the job wants, whatever this machine allows. */
	permits_set_limit(64);
	entry = permits_entry_begin(1, "test", 1, now_ns);
	ktest_check(entry >= 0);
	pid = fork();
	ktest_check(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		change_for_ever(registry, entry);
	}
	for (int i = 0; i < SHARES; i++)
		ktest_check(permits_share(entry, 1, now_ns, &until_ns) <= 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

/* What bounds a look is read once, or the look goes beyond the registry. */
static void a_number_that_changes_bounds_all_the_same(void **state)
{
	need_root();
	assert_int_equal(ktest_in_child(share_what_changes, NULL), 0);
}

/* ---- signals ---- */

static unsigned interruptions;

/* The library is linked statically: its calls pass here. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
	if (interruptions) {
		interruptions--;
		return EINTR;
	}
	return fallocate(fd, 0, offset, len) ? errno : 0;
}

static bool is_there(int name)
{
	char path[] = REGISTRY;
	struct stat st;

	path[sizeof(path) - 2] = (char)('0' + name);
	return !stat(path, &st);
}

/* A registry of another name would be another registry: caps hold in one. */
static void an_interrupted_call_is_repeated(void **state)
{
	need_root();
	interruptions = 3;
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
	assert_true(is_there(0));
	for (int n = 1; n < NAMES; n++)
		assert_false(is_there(n));
	remove_registries();
	/* Nor for ever. */
	interruptions = 150;
	assert_int_equal(ktest_in_child(job_as_user, NULL), 0);
	for (int n = 0; n < NAMES; n++)
		assert_false(is_there(n));
	interruptions = 0;
}

/* ---- the directory ---- */

#define NAMES_MOST 65536
#define REGISTRIES_MOST 1024

/* Names with nothing behind them: @from to @to, not included. */
static void plant_names(const char *name, int from, int to)
{
	char path[64];

	for (int i = from; i < to; i++) {
		snprintf(path, sizeof(path), "/dev/shm/%s%d.0", name, i);
		ktest_check(!link("/dev/shm/x", path));
	}
}

static int is_cut(void)
{
	struct ktask_permits_info permits = KTASK_PERMITS_INFO_INIT;

	ktask_jobs(NULL, 0, &permits);
	return permits.cut;
}

/* In place of /dev/shm: more names than are read, of registries and others. */
static int read_many_names(void *arg)
{
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev/shm", "tmpfs", 0, NULL))
		return 77;
	ktest_check(!is_cut());
	put_file("/dev/shm/x", 64, 0644, 0, true);
	/* Our own is there already. */
	plant_names("ktask-slots-", 1, REGISTRIES_MOST);
	ktest_check(!is_cut());
	plant_names("ktask-slots-", REGISTRIES_MOST, REGISTRIES_MOST + 1);
	ktest_check(is_cut());
	ktest_check(!unlink("/dev/shm/ktask-slots-1.0"));
	ktest_check(!is_cut());
	plant_names("other-", 0, NAMES_MOST);
	ktest_check(is_cut());
	return 0;
}

static void a_filled_directory_is_told_of(void **state)
{
	int status;

	need_root();
	status = ktest_in_child(read_many_names, NULL);
	if (status == 77 << 8)
		ktest_skip("no mount namespace");
	assert_int_equal(status, 0);
}

#define CASE(func) cmocka_unit_test_setup_teardown(func, as_root, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_registry_is_made_by_the_first_job),
		CASE(files_of_others_are_stepped_over),
		CASE(all_names_taken_is_no_error),
		CASE(garbage_of_any_size_is_stepped_over),
		CASE(links_are_not_followed),
		CASE(lies_of_other_users_stop_nobody),
		CASE(a_number_that_changes_bounds_all_the_same),
		CASE(an_interrupted_call_is_repeated),
		CASE(a_filled_directory_is_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
