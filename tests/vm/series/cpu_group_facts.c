/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers and the CPU controller of groups: the group that the caller is in is charged for
 * their time, within its quota, and a group whose quota (cpu.max) is worth one CPU or less
 * has none.  Only clocks of CPU time are compared, so that it does not matter how busy this
 * machine is.
 *
 * What is charged is not said where there are no helpers, nor of kernels without ktask.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../processes.h"
#include "facts.h"

#define GROUP "charged"
#define GROUP_PATH GROUP_DIR "/" GROUP
#define SMALL_GROUP_PATH GROUP_DIR "/quota"
#define PAGES 90
#define USES 20
/* Of helpers, before anything is compared: the clock of their files has 10 ms. */
#define ENOUGH_US 300000
#define CLOCK_US 20000
#define QUOTA_CPUS 2
#define QUOTA_SECONDS 3.0

/* What the fields 14 and 15 of /proc/PID/stat say, for a thread of the pool. */
static long helper_us(const char *pid)
{
	char path[300], text[1000], *at;
	long user = 0, system = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	read_text(path, text, sizeof(text));
	if (!strstr(text, "(ktask/"))
		return 0;
	at = strrchr(text, ')');
	if (!at || sscanf(at,
			  ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
			  "%ld %ld",
			  &user, &system) != 2)
		return 0;
	return (user + system) * (1000000 / sysconf(_SC_CLK_TCK));
}

/* Of those that there are.  One that idles for seconds ends, which nothing here does. */
static long helpers_us(void)
{
	return sum_over_processes(helper_us);
}

static long group_us(void)
{
	return number_in(GROUP_PATH "/cpu.stat", "usage_usec ");
}

static long own_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

/* Of children that have ended and were waited for. */
static long children_us(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
	       used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

static void fill_file(void)
{
	int fd = memfd_create("facts", MFD_HUGETLB | pool_2m.flag);

	if (fallocate(fd, 0, 0, PAGES * (off_t)HUGE))
		_exit(1);
	close(fd);
}

/* The group has this process only. */
static void compare_use(void *arg)
{
	double until = seconds_now() + HELPER_SECONDS;
	long helpers, group, own;

	(void)arg;
	enter_group(GROUP);
	own = own_us();
	group = group_us();
	helpers = helpers_us();
	do {
		fill_file();
	} while (helpers_us() - helpers < ENOUGH_US && seconds_now() < until);
	helpers = helpers_us() - helpers;
	own = own_us() - own;
	group = group_us() - group;
	note_line("helpers used %ld us, their caller %ld, its group %ld",
		  helpers, own, group);
	check_that(helpers >= ENOUGH_US &&
			   group - own > helpers / 4 * 3 - CLOCK_US &&
			   group - own < helpers / 4 * 5 + CLOCK_US,
		   "CPU time of helpers is charged to the caller's group");
}

static void compute_in_group(void)
{
	enter_group(GROUP);
	for (;;)
		;
}

/*
 * With one that computes, a caller and a helper could use three CPUs.  Each is asked what it
 * used itself, because a group may not know of helpers.
 */
static void stay_within_quota(void *arg)
{
	double start, seconds;
	long used, helpers;
	pid_t other = fork();

	(void)arg;
	if (!other)
		compute_in_group();
	enter_group(GROUP);
	helpers = helpers_us();
	used = own_us();
	start = seconds_now();
	while (seconds_now() < start + QUOTA_SECONDS)
		fill_file();
	seconds = seconds_now() - start;
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	helpers = helpers_us() - helpers;
	used = own_us() - used + children_us() + helpers;
	note_line(
		"in %.3f s a group of %d CPUs used %ld us, of which helpers %ld",
		seconds, QUOTA_CPUS, used, helpers);
	/* The last debts are not paid yet: a chunk may take long on a busy machine. */
	check_that(
		(double)used <= QUOTA_CPUS * seconds * 1.2e6,
		"a group has no more CPU time than its quota, helpers included");
}

void tell_charge_facts(void)
{
	if (!helpers_expected())
		return;
	write_text(GROUP_DIR "/cgroup.subtree_control", "+cpu");
	mkdir(GROUP_PATH, 0755);
	pool_set(&pool_2m, PAGES);
	run_child(compare_use, NULL);
	if (sysconf(_SC_NPROCESSORS_ONLN) > QUOTA_CPUS) {
		write_text(GROUP_PATH "/cpu.max", "200000 100000");
		run_child(stay_within_quota, NULL);
	} else {
		skip_check(
			"a machine of more CPUs than the quota is worth does",
			"a group has no more CPU time than its quota");
	}
	pool_set(&pool_2m, 0);
	rmdir(GROUP_PATH);
}

/* ---- quotas of one CPU or less ---- */

/* It ends what it did before, for which there may be a helper still. */
static bool enter_quota(const char *max)
{
	mkdir(SMALL_GROUP_PATH, 0755);
	if (write_text(SMALL_GROUP_PATH "/cpu.max", max))
		return false;
	enter_group("quota");
	fill_file();
	return true;
}

static void fill_with_one_cpu(void *arg)
{
	long before, helped;

	if (!enter_quota(arg))
		_exit(1);
	before = helpers_worked();
	for (int i = 0; i < USES; i++)
		fill_file();
	helped = helpers_worked() - before;
	check_that(!helped,
		   "a group whose quota is %s has no helpers: %ld came",
		   (const char *)arg, helped);
	tell_fact_number(
		number_in(SMALL_GROUP_PATH "/cpu.stat", "nr_throttled ") >= 0,
		"quota of %s: counted", (const char *)arg);
}

void tell_quota_facts(void)
{
	write_text(GROUP_DIR "/cgroup.subtree_control", "+cpu");
	pool_set(&pool_2m, PAGES);
	tell_fact_number(run_child(fill_with_one_cpu, "100000 100000"),
			 "quota of one CPU: child");
	tell_fact_number(run_child(fill_with_one_cpu, "50000 100000"),
			 "quota of half a CPU: child");
	rmdir(SMALL_GROUP_PATH);
	write_text(GROUP_DIR "/cgroup.subtree_control", "-cpu");
	pool_set(&pool_2m, 0);
}
