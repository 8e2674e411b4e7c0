/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Quota: the capacity of a group for threads, from its quota, use and throttling.
 *
 * With one thread too many, the kernel stops the whole group until its period ends.
 * With one too few, the job only lacks a part of its speed.  So the capacity is rounded
 * down; but if an eighth of a CPU or less is missing, it counts as a whole one.
 */
#include "core/quota.h"

#define MILLI 1000
#define EIGHTH_MILLI (MILLI / 8)
/* Shorter, and the counters' own steps (a tick) would be all that is seen. */
#define STEP_MIN_NS 10000000
/* A longer gap is no part of a job. */
#define STEP_MAX_NS 1000000000
#define GIVE_BACK_NS 1000000000

uint32_t kt_quota_milli(uint64_t quota, uint64_t period)
{
	uint64_t milli;

	if (!period)
		return UINT32_MAX;
	if (quota > UINT64_MAX / MILLI)
		milli = KT_MIN(quota / period, UINT32_MAX) * MILLI;
	else
		milli = quota * MILLI / period;
	return (uint32_t)KT_MIN(milli, UINT32_MAX);
}

static unsigned threads_in(uint32_t milli)
{
	uint64_t threads = ((uint64_t)milli + EIGHTH_MILLI) / MILLI;

	return (unsigned)KT_MAX(threads, 1);
}

unsigned kt_quota_most(const struct kt_quota *quota)
{
	return threads_in(quota->milli);
}

unsigned kt_quota_threads(const struct kt_quota *quota)
{
	uint32_t used = KT_MIN(quota->others_milli, quota->milli);
	unsigned threads = threads_in(quota->milli - used);

	return threads > quota->held ? threads - quota->held : 1;
}

/* A counter that went back was reset: nothing is known of the time between. */
static uint64_t counter_growth(uint64_t from, uint64_t to)
{
	if (from == KT_QUOTA_UNKNOWN || to == KT_QUOTA_UNKNOWN || to < from)
		return 0;
	return to - from;
}

static void see_others(struct kt_quota *quota,
		       const struct kt_quota_sample *sample, uint64_t ns)
{
	const struct kt_quota_sample *last = &quota->last;
	uint64_t threads = KT_MAX(last->own_threads, sample->own_threads);
	uint64_t own = counter_growth(last->own_ns, sample->own_ns);
	uint64_t group = counter_growth(last->group_ns, sample->group_ns);
	uint64_t others;

	if (own / ns >= threads)
		own = threads * ns;
	others = group > own ? group - own : 0;
	others = kt_quota_milli(others, ns);
	/* Up at once, down by halves: a load that flickers is a load. */
	if (ns < STEP_MAX_NS && others < quota->others_milli)
		others = (quota->others_milli + others) / 2;
	quota->others_milli = (uint32_t)others;
}

static bool ran_out(const struct kt_quota *quota,
		    const struct kt_quota_sample *sample, uint64_t ns)
{
	const struct kt_quota_sample *last = &quota->last;

	if (ns >= STEP_MAX_NS ||
	    !counter_growth(last->nr_throttled, sample->nr_throttled))
		return false;
	/* Any job that uses its quota well runs out of it now and then. */
	return sample->throttled_ns == KT_QUOTA_UNKNOWN ||
	       counter_growth(last->throttled_ns, sample->throttled_ns) >=
		       ns / 8;
}

static void see_throttling(struct kt_quota *quota,
			   const struct kt_quota_sample *sample, uint64_t ns)
{
	uint64_t quiet_ns = counter_growth(quota->held_ns, sample->now_ns);

	if (ran_out(quota, sample, ns)) {
		quota->held = KT_MIN(quota->held + 1, kt_quota_most(quota) - 1);
		quota->held_ns = sample->now_ns;
	} else if (quiet_ns >= GIVE_BACK_NS) {
		quota->held -=
			(uint32_t)KT_MIN(quiet_ns / GIVE_BACK_NS, quota->held);
		quota->held_ns = sample->now_ns;
	}
}

void kt_quota_step(struct kt_quota *quota, const struct kt_quota_sample *sample)
{
	uint64_t ns = counter_growth(quota->last.now_ns, sample->now_ns);

	if (quota->seen && ns < STEP_MIN_NS)
		return;
	if (quota->seen) {
		see_others(quota, sample, ns);
		see_throttling(quota, sample, ns);
	} else {
		quota->held_ns = sample->now_ns;
	}
	quota->last = *sample;
	quota->seen = true;
}
