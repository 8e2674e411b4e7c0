/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Control groups that a test makes up: an empty directory in place of the machine's, which
 * nobody else sees.
 */
#ifndef UNIT_TEST_OWN_GROUPS_H
#define UNIT_TEST_OWN_GROUPS_H

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "ktest.h"

#define ROOT "/sys/fs/cgroup"
#define GROUPS ROOT "/of-the-process"

static inline void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fprintf(file, "%s\n", text) > 0);
	assert_int_equal(fclose(file), 0);
}

/* The test is skipped where that cannot be done. */
static inline void cover_groups(void)
{
	if (unshare(CLONE_NEWNS))
		ktest_skip("no mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", ROOT, "tmpfs", 0, NULL))
		ktest_skip("nothing may be mounted");
}

#endif /* UNIT_TEST_OWN_GROUPS_H */
