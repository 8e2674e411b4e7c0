/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Without /proc, /sys, /dev/shm or /etc, with any of them empty, and in a
 * control group namespace of its own: every unit of a job is done once, helpers
 * come, memory is populated, no limit is made up, no descriptor stays open.
 */
#include "ktest.h"
#include "pages.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <ktask/ktask.h>

#include "jobs.h"

static bool hide_directory(const char *directory)
{
	return !mount("none", directory, "tmpfs", MS_RDONLY, "size=4k");
}

/* A mount namespace of its own, which nobody else sees. */
static bool own_mounts(int flags)
{
	return !unshare(CLONE_NEWNS | flags) &&
	       !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static int populate_some(void)
{
	char *at = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char in_core[1024] = { 0 };

	ktest_check(at != MAP_FAILED);
	ktest_check(!ktask_populate(at, 4 * MIB, 0));
	ktest_check(!mincore(at, 4 * MIB, in_core));
	for (size_t i = 0; i < 4 * MIB / page_bytes(); i++)
		ktest_check(in_core[i] & 1);
	return munmap(at, 4 * MIB);
}

static unsigned limit_of(const char *name)
{
	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 32);

	for (unsigned i = 0; i < nr && i < 32; i++)
		if (!strcmp(limits[i].name, name))
			return limits[i].threads;
	return 0;
}

/* Of each limit, what it was before: nothing that is not to be seen limits. */
static const char *const kinds[] = { "cpus",	     "affinity",
				     "cap",	     "energy",
				     "cgroup-quota", "cgroup-pids",
				     "cgroup-memory" };
#define NR_KINDS KTEST_ARRAY_SIZE(kinds)
static unsigned before[NR_KINDS];

static void check_limits(void)
{
	for (unsigned i = 0; i < NR_KINDS; i++)
		ktest_check(limit_of(kinds[i]) >= before[i]);
	for (unsigned i = 0; i < 3; i++)
		ktest_check(limit_of(kinds[i]) == before[i]);
}

/* In a process of its own: the library shall look anew where things are
 * missing. */
static int tell_limits(void *arg)
{
	for (unsigned i = 0; i < NR_KINDS; i++)
		((unsigned *)arg)[i] = limit_of(kinds[i]);
	return 0;
}

static int read_limits(void **state)
{
	unsigned *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = ktest_in_child(tell_limits, shared);

	memcpy(before, shared, sizeof(before));
	return status || munmap(shared, 4096);
}

static int do_nothing(void *arg)
{
	return 0;
}

/* Exit statuses: of a test that cannot be done here, and of one whose helper
 * did not come, which on a busy machine says nothing. */
#define CANNOT 77
#define NO_HELPER 78

static void check_helper(void)
{
	struct once once = { .in_helper = true, .func = do_nothing };

	for (unsigned i = 0; i < NR_KINDS; i++)
		if (before[i] < 2)
			return;
	ktest_check(!once_run(&once));
	if (!once_begun(&once))
		_exit(NO_HELPER);
}

static int use_everything(void)
{
	struct ktask_job_info jobs[4] = { KTASK_JOB_INFO_INIT };
	struct ktask_permits_info permits = KTASK_PERMITS_INFO_INIT;
	int fd = next_fd();

	for (int i = 0; i < 20; i++)
		ktest_check(job_works());
	ktest_check(!populate_some());
	check_limits();
	check_helper();
	ktask_jobs(jobs, 4, &permits);
	ktask_trim();
	ktest_check(job_works());
	ktest_check(next_fd() == fd);
	return 0;
}

static int work_without(void *arg)
{
	const char *const *directories = arg;

	if (!own_mounts(0))
		return CANNOT;
	for (; *directories; directories++)
		if (!hide_directory(*directories))
			return CANNOT;
	return use_everything();
}

static int with_everything(void *arg)
{
	check_helper();
	return 0;
}

static void check_child(int (*func)(void *arg), const void *arg,
			const char *why)
{
	int status = ktest_in_child_for(func, (void *)arg, 100);

	if (status == CANNOT << 8)
		ktest_skip("%s", why);
	if (status == NO_HELPER << 8 &&
	    ktest_in_child_for(with_everything, NULL, 100))
		ktest_skip("no helper comes, nor where nothing is missing");
	assert_int_equal(status, 0);
}

static void check_without(const char *const *directories)
{
	check_child(work_without, directories,
		    "no mount namespace can be made");
}

static void without_proc(void **state)
{
	check_without((const char *const[]){ "/proc", NULL });
}

static void without_sys(void **state)
{
	check_without((const char *const[]){ "/sys", NULL });
}

static void without_shared_memory(void **state)
{
	check_without((const char *const[]){ "/dev/shm", NULL });
}

static void without_all_of_them(void **state)
{
	check_without(
		(const char *const[]){ "/proc", "/sys", "/dev", "/etc", NULL });
}

static int in_an_empty_root(void *arg)
{
	char root[] = "/tmp/ktask-root.XXXXXX";

	if (!own_mounts(0) || !mkdtemp(root) || !hide_directory(root) ||
	    chroot(root) || chdir("/"))
		return CANNOT;
	return use_everything();
}

static void with_an_empty_root(void **state)
{
	check_child(in_an_empty_root, NULL, "the root cannot be changed");
}

/* Its group is "/" there, and what lies above cannot be seen. */
static int in_a_cgroup_namespace(void *arg)
{
	if (!own_mounts(CLONE_NEWCGROUP))
		return CANNOT;
	return use_everything();
}

static void with_control_groups_of_its_own(void **state)
{
	check_child(in_a_cgroup_namespace, NULL,
		    "no control group namespace can be made");
}

/* They go in the middle of things, too. */
static int hide_both(void *arg)
{
	int error;

	(void)arg;
	error = !hide_directory("/proc");
	return error | !hide_directory("/sys");
}

static int lose_them_in_a_job(void *arg)
{
	struct once once = { .in_helper = false, .func = hide_both };

	if (!own_mounts(0))
		return CANNOT;
	ktest_check(job_works());
	ktest_check(!once_run(&once));
	ktest_check(once_begun(&once));
	ktest_check(tally_is(&once.tally, 1));
	return use_everything();
}

static void lost_in_the_middle_of_a_job(void **state)
{
	check_child(lose_them_in_a_job, NULL, "no mount namespace can be made");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(without_proc),
		KTEST(without_sys),
		KTEST(without_shared_memory),
		KTEST(without_all_of_them),
		KTEST(with_an_empty_root),
		KTEST(with_control_groups_of_its_own),
		KTEST(lost_in_the_middle_of_a_job),
	};

	return cmocka_run_group_tests(tests, read_limits, NULL);
}
