/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A registry of permits that only one test uses, and of which one permit may be taken.
 *
 * The test names the user whom no other test is: ONE_PERMIT_USER.
 */
#ifndef TEST_ONEPERMIT_H
#define TEST_ONEPERMIT_H

#include "ktest.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "user/limits/permits.h"
#include "user/limits/registry.h"

/* With the right to lend, so that helpers have the lowest priority. */
static inline void become_user(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2];

	ktest_check(!prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	ktest_check(
		!setresuid(ONE_PERMIT_USER, ONE_PERMIT_USER, ONE_PERMIT_USER));
	ktest_check(!syscall(SYS_capget, &head, data));
	data[0].effective |= data[0].permitted & 1u << CAP_SYS_NICE;
	ktest_check(!syscall(SYS_capset, &head, data));
}

/* Before the library is used for the first time. */
static inline void one_permit(void)
{
	struct ktask_limit limit = KTASK_LIMIT_INIT;

	if (!geteuid())
		become_user();
	ktask_limits(&limit, 1);
	ktest_check(permits_shared());
	permits_set_limit(1);
}

/* At the end of the test.  Return: 0. */
static inline int remove_registry(void)
{
	char path[64];

	snprintf(path, sizeof(path), REGISTRY_DIR "/ktask-slots-%u.0",
		 ONE_PERMIT_USER);
	return geteuid() ? 0 : unlink(path);
}

#endif /* TEST_ONEPERMIT_H */
