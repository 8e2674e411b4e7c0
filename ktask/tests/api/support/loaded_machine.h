/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs on a machine of which the test says what runs there: a tree of files in place of
 * /proc and /sys, and whether a job begins alone.  Include in one file of a program.
 */
#ifndef TESTS_API_SUPPORT_LOADED_MACHINE_H
#define TESTS_API_SUPPORT_LOADED_MACHINE_H

#include "tree.h"
#include "work.h"

#include "user/user_job.h"
#include "util/file.h"

static struct tree loaded_tree;

/* loaded_machine_begin - of the CPUs that there are and @nr_more */
static inline void loaded_machine_begin(long nr_more)
{
	char text[32];

	tree_begin(&loaded_tree);
	snprintf(text, sizeof(text), "0-%ld\n",
		 sysconf(_SC_NPROCESSORS_ONLN) + nr_more - 1);
	tree_put(&loaded_tree, "/sys/devices/system/cpu/online", text);
	file_root = loaded_tree.root;
	unsetenv("KTASK_OVERLOAD");
}

/* remove_machine - for cmocka, behind each test */
static inline int remove_machine(void **state)
{
	file_root = "";
	tree_end(&loaded_tree);
	return 0;
}

/* put_running - the text of /proc/loadavg */
static inline void put_running(const char *text)
{
	tree_put(&loaded_tree, "/proc/loadavg", text);
}

static inline int note_alone(struct work *work, size_t from, size_t to)
{
	if (!work_is_helper(work))
		*(bool *)work->arg = job_current()->job->alone;
	return 0;
}

/* begins_alone - does a job that begins now have no helper? */
static inline bool begins_alone(void)
{
	bool alone = false;
	struct work work = { .also = note_alone, .arg = &alone };

	work_begin(&work, 2);
	ktest_check(!work_run(&work));
	work_end(&work);
	return alone;
}

#endif /* TESTS_API_SUPPORT_LOADED_MACHINE_H */
