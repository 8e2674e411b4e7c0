/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See spares_count.h. */
#include "lib/spares_count.h"

/* Averages are over about so many looks: threads that wake between the look at
 * ours and that at all are no others. */
#define LOOKS 8
#define ONE 64
/* A job that uses less than one CPU is in nobody's way: its caller alone might
 * use as much.  With spares it uses more, so that it begins as one of these
 * below half a CPU. */
#define LITTLE (ONE / 2)

void spares_count_begin(struct spares_count *count)
{
	count->need = 0;
	count->extra = 0;
	count->crowd = 0;
	/* Until something else was seen for some looks. */
	count->busy = ONE;
	count->held_back = ONE;
	count->little = false;
}

static void average(int *mean, int seen)
{
	*mean -= *mean / LOOKS;
	*mean += seen * ONE / LOOKS;
}

/*
 * The job's places, as far as there are idle CPUs for them.  On a crowded machine
 * a helper of the lowest priority that has its data waits on for a CPU, and its
 * caller for it.  The watcher itself runs, too.
 */
static unsigned places_now(struct spares_count *count,
			   const struct spares_look *look)
{
	int cpus = (int)look->cpus;
	int running = (int)look->sight.running;
	int others = (int)look->runnable - running - 1;
	int idle;

	/* Negative ones too: the average shall be right. */
	average(&count->crowd, KT_MIN(others, cpus));
	average(&count->busy, KT_MIN(running, cpus));
	others = KT_MAX(count->crowd + ONE / 2, 0) / ONE;
	idle = KT_MAX(cpus - others, 1);
	return KT_MIN(look->threads, (unsigned)idle);
}

static bool has_room(struct spares_count *count, const struct spares_look *look,
		     unsigned places)
{
	if (count->busy >= ONE)
		count->little = false;
	else if (count->busy < LITTLE)
		count->little = true;
	if (look->alone)
		return false;
	return places >= 2 || (count->little && !look->idle_only);
}

/* Spares that pay, whether there is room for them or not. */
static unsigned paying(struct spares_count *count,
		       const struct spares_look *look)
{
	unsigned depth;

	/* Others may share the places, and have spares as well. */
	kt_depth_bound(&count->depth, KT_MAX(look->threads, 1),
		       KT_MAX(look->threads, 1) + look->max);
	depth = kt_depth_step(&count->depth, look->now_ns, look->units,
			      look->chunk);
	return KT_MIN(depth - KT_MIN(depth, look->threads), look->max);
}

/* Beside those that pay, one for each that stands and is blocked. */
static unsigned standing(const struct spares_look *look)
{
	const struct sight *sight = &look->sight;

	if (look->alone)
		return 0;
	return KT_MIN(look->extra,
		      sight->working - KT_MIN(sight->running, sight->working));
}

/* Those that were blocked at this look are replaced, as far as @most. */
static void replace(struct spares_count *count, const struct sight *sight,
		    unsigned places, unsigned most)
{
	unsigned need = count->need;

	if (!sight->running)
		need = most;
	else if (sight->running < places)
		need += places - sight->running;
	else
		need -= KT_MIN(need, sight->running - places);
	count->need = KT_MIN(need, most);
}

unsigned spares_count(struct spares_count *count,
		      const struct spares_look *look)
{
	unsigned places = places_now(count, look);
	unsigned pay = paying(count, look);
	unsigned most = has_room(count, look, places) ? pay : 0;

	most = KT_MIN(most + standing(look), look->max);
	replace(count, &look->sight, places, most);
	average(&count->held_back, count->need < pay);
	/* Those who stand are not counted: a window ends with a change of them. */
	if (count->held_back > ONE / 2 || look->extra != count->extra)
		kt_depth_pause(&count->depth);
	count->extra = look->extra;
	return count->need;
}
