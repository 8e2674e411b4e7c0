/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What sched_setattr(2) takes: the first version of the kernel's structure, which it
 * takes for ever.  The C library has it since 2.41, under another name.
 */
#ifndef KTASK_UTIL_SCHED_ATTR_H
#define KTASK_UTIL_SCHED_ATTR_H

#include <stdint.h>

struct sched_attr_v0 {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

#endif /* KTASK_UTIL_SCHED_ATTR_H */
