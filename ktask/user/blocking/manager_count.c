/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See manager_count.h. */
#include "user/blocking/manager_count.h"

/* Averages are over about so many samples: threads that wake between sampling the
 * job's threads and counting all that run must not count as others'. */
#define SAMPLES 8
#define ONE 64
/* A job that uses less than one CPU disturbs no other work: its caller alone might use as
 * much.  Compensating helpers make it use more, so it must begin below half a CPU. */
#define LITTLE (ONE / 2)

void manager_count_begin(struct manager_count *count)
{
	count->need = 0;
	count->extra = 0;
	count->others = 0;
	/* Until some samples say otherwise. */
	count->busy = ONE;
	count->held_back = ONE;
	count->little = false;
}

static void update_average(int *mean, int seen)
{
	*mean -= *mean / SAMPLES;
	*mean += seen * ONE / SAMPLES;
}

/*
 * The job's target concurrency, as far as CPUs idle.  On an overloaded machine, a helper
 * of the lowest priority whose data has arrived still waits for a CPU, and its caller
 * waits for the helper.  The manager itself also runs.
 */
static unsigned target_concurrency(struct manager_count *count,
				   const struct manager_sample *sample)
{
	int cpus = (int)sample->cpus;
	int running = (int)sample->seen.running;
	int others = (int)sample->runnable - running - 1;
	int idle;

	/* Negative values are averaged too, or the average would be too high. */
	update_average(&count->others, KT_MIN(others, cpus));
	update_average(&count->busy, KT_MIN(running, cpus));
	others = KT_MAX(count->others + ONE / 2, 0) / ONE;
	idle = KT_MAX(cpus - others, 1);
	return KT_MIN(sample->threads, (unsigned)idle);
}

static bool has_capacity(struct manager_count *count,
			 const struct manager_sample *sample, unsigned target)
{
	if (count->busy >= ONE)
		count->little = false;
	else if (count->busy < LITTLE)
		count->little = true;
	if (sample->has_one_cpu)
		return false;
	return target >= 2 || (count->little && !sample->idle_only);
}

/* Compensating helpers that pay, whether there are CPUs for them or not. */
static unsigned paying_helpers(struct manager_count *count,
			       const struct manager_sample *sample)
{
	unsigned io;

	/* The target may be less than at the beginning: other jobs came. */
	kt_io_bound(&count->io, KT_MAX(sample->threads, 1),
		    KT_MAX(sample->threads, 1) + sample->max);
	io = kt_io_step(&count->io, sample->now_ns, sample->units,
			sample->chunk);
	return KT_MIN(io - KT_MIN(io, sample->threads), sample->max);
}

/* Beside those that pay, one for each thread that is stalled and blocked. */
static unsigned stalled_threads(const struct manager_sample *sample)
{
	const struct thread_sample *seen = &sample->seen;

	if (sample->has_one_cpu)
		return 0;
	return KT_MIN(sample->extra,
		      seen->working - KT_MIN(seen->running, seen->working));
}

/* Replace the threads that this sample found blocked, up to @most. */
static void replace_blocked(struct manager_count *count,
			    const struct thread_sample *seen, unsigned target,
			    unsigned most)
{
	unsigned need = count->need;

	if (!seen->running)
		need = most;
	else if (seen->running < target)
		need += target - seen->running;
	else
		need -= KT_MIN(need, seen->running - target);
	count->need = KT_MIN(need, most);
}

unsigned manager_count_helpers(struct manager_count *count,
			       const struct manager_sample *sample)
{
	unsigned target = target_concurrency(count, sample);
	unsigned pay = paying_helpers(count, sample);
	unsigned most = has_capacity(count, sample, target) ? pay : 0;

	most = KT_MIN(most + stalled_threads(sample), sample->max);
	replace_blocked(count, &sample->seen, target, most);
	update_average(&count->held_back, count->need < pay);
	/* A rate is that of one number of threads: measure it anew. */
	if (count->held_back > ONE / 2 || sample->extra != count->extra)
		kt_io_pause(&count->io);
	count->extra = sample->extra;
	return count->need;
}
