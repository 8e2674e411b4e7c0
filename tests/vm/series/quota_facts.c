/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A group whose CPU quota (cpu.max) is worth one CPU or less: its jobs have no helpers.
 * Whose time that of helpers is, and larger quotas, are in charge_facts.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts.h"

#define FILE_PAGES 90
#define GROUP GROUP_DIR "/quota"
#define USES 20

static void fill_file(void)
{
	int fd = memfd_create("quota", MFD_HUGETLB | pool_2m.flag);

	if (fallocate(fd, 0, 0, FILE_PAGES * (off_t)HUGE))
		_exit(2);
	close(fd);
}

/* It ends what it did before, for which there may be a helper still. */
static bool enter_quota(const char *max)
{
	mkdir(GROUP, 0755);
	if (write_text(GROUP "/cpu.max", max))
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
	check(!helped, "a group whose quota is %s has no helpers: %ld came",
	      (const char *)arg, helped);
	fact_number(number_in(GROUP "/cpu.stat", "nr_throttled ") >= 0,
		    "quota of %s: counted", (const char *)arg);
}

void tell_quota_facts(void)
{
	write_text(GROUP_DIR "/cgroup.subtree_control", "+cpu");
	pool_set(&pool_2m, FILE_PAGES);
	fact_number(run_child(fill_with_one_cpu, "100000 100000"),
		    "quota of one CPU: child");
	fact_number(run_child(fill_with_one_cpu, "50000 100000"),
		    "quota of half a CPU: child");
	rmdir(GROUP);
	write_text(GROUP_DIR "/cgroup.subtree_control", "-cpu");
	pool_set(&pool_2m, 0);
}
