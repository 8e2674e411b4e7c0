/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Quota: the capacity of a group with a CPU quota, in threads.
 *
 * Owns the arithmetic only: the host reads the numbers (control groups).  Behaves
 * badly where several processes of a group begin jobs in the same instant: each sees
 * the others one sample later.
 */
#ifndef KTASK_CORE_QUOTA_H
#define KTASK_CORE_QUOTA_H

#include "core/deps.h"

#define KT_QUOTA_UNKNOWN UINT64_MAX

/* Counters of a group at one time; all of them only grow. */
struct kt_quota_sample {
	uint64_t now_ns;
	uint64_t group_ns; /* CPU time of the group; may be unknown */
	uint64_t own_ns; /* CPU time of this process */
	uint64_t nr_throttled; /* periods in which the quota ran out */
	uint64_t throttled_ns; /* CPU time lost so; may be unknown */
	uint32_t own_threads; /* of this process in jobs now */
};

struct kt_quota {
	uint32_t milli; /* allowed, in thousandths of a CPU */
	uint32_t others_milli; /* used in the group by others than our jobs */
	uint32_t held; /* threads held back after throttling */
	bool seen; /* last is valid */
	uint64_t
		held_ns; /* when held was changed, or the quota ran out, last */
	struct kt_quota_sample last;
};

/* kt_quota_milli - @quota in each @period as thousandths of a CPU */
uint32_t kt_quota_milli(uint64_t quota, uint64_t period);

/* kt_quota_most - threads if nobody else used the group; at least 1 */
unsigned kt_quota_most(const struct kt_quota *quota);

/* kt_quota_threads - threads that the quota has capacity for now; at least 1 */
unsigned kt_quota_threads(const struct kt_quota *quota);

/*
 * kt_quota_step - update the estimate from a sample of the group's counters
 *
 * Others use what the group used since the last step, less the share of our own jobs.
 * That share is what the process used, but at most what its threads in jobs could have
 * used: a busy thread outside of jobs counts as one of the others.  If the quota ran
 * out noticeably, one more thread is held back; after each second without that, one is
 * given back.
 */
void kt_quota_step(struct kt_quota *quota,
		   const struct kt_quota_sample *sample);

#endif /* KTASK_CORE_QUOTA_H */
