/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Capabilities of the calling thread.
 */
#ifndef KTASK_UTIL_CAPABILITY_H
#define KTASK_UTIL_CAPABILITY_H

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* has_capability - is CAP_... effective?  By system call, past libcap. */
static inline bool has_capability(int capability)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capget, &head, data) &&
	       (data[CAP_TO_INDEX(capability)].effective &
		CAP_TO_MASK(capability));
}

#endif /* KTASK_UTIL_CAPABILITY_H */
