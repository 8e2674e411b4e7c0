/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See manager_sample.h. */
#include "lib/monitor.h"
#include "lib/manager_sample.h"

/* Where nothing was done for so long and so many times what chunks take, and at
 * most so much longer, who stands does not count: as many more join, however
 * busy the machine and whether it pays or not. */
#define STILL_NS 20000000
#define STILL_CHUNKS 4
#define STILL_MAX_NS 200000000

static struct sight see_all(const struct manager *manager, bool closely)
{
	const struct user_job *job = manager->job;
	struct sight sight = { 0 };

	sight_add(&sight, manager->caller, closely);
	for (unsigned i = 0; i < kt_load_acquire(&job->ctx.helpers.nr_used);
	     i++)
		sight_add(&sight, kt_load(&job->ctx.helpers.items[i].host.tid),
			  closely);
	for (unsigned i = 0; i < manager->helpers.nr_used; i++)
		sight_add(&sight, kt_load(&manager->helpers.items[i].host.tid),
			  closely);
	return sight;
}

/*
 * A thread that waits for the helpers of a nested job is not blocked: they use
 * its place.
 */
struct sight sample_working(const struct manager *manager)
{
	struct sight sight = see_all(manager, false);
	int ready = monitor_ready(sight.working);

	if (ready < 0)
		sight = see_all(manager, true);
	else
		sight.running = (unsigned)ready;
	sight.running += kt_load(&manager->job->nested);
	return sight;
}

static uint64_t long_for(const struct kt_job *job)
{
	uint64_t chunk_ns = kt_split_usual_ns(&job->split, &job->cost);
	uint64_t most = STILL_MAX_NS / STILL_CHUNKS;

	return STILL_NS + STILL_CHUNKS * KT_MIN(chunk_ns, most);
}

static unsigned nr_standing(const struct manager *manager, uint64_t now_ns,
			    uint64_t long_ns)
{
	const struct user_job *job = manager->job;
	struct sight_last *last = manager->last;
	unsigned nr = 0;

	nr += sight_stands(last++, manager->caller,
			   kt_load(&job->ctx.caller.units), now_ns, long_ns);
	for (unsigned i = 0; i < kt_load_acquire(&job->ctx.helpers.nr_used);
	     i++) {
		const struct kt_item *item = &job->ctx.helpers.items[i];

		nr += sight_stands(&last[i], kt_load(&item->host.tid),
				   kt_load(&item->worker.units), now_ns,
				   long_ns);
	}
	last += job->ctx.helpers.nr;
	for (unsigned i = 0; i < manager->helpers.nr_used; i++) {
		const struct kt_item *item = &manager->helpers.items[i];

		nr += sight_stands(&last[i], kt_load(&item->host.tid),
				   kt_load(&item->worker.units), now_ns,
				   long_ns);
	}
	return nr;
}

/* As long as something is done a rate tells how many pay (core/depth.h), and who
 * waits for a thread that runs will get on without others. */
unsigned sample_standing(struct manager *manager, uint64_t units,
			 unsigned running, uint64_t now_ns)
{
	uint64_t long_ns = long_for(&manager->job->ctx.job);
	unsigned standing = nr_standing(manager, now_ns, long_ns);

	if (units != manager->done) {
		manager->done = units;
		manager->done_ns = now_ns;
	}
	if (!running && now_ns - manager->done_ns >= long_ns)
		manager->extra = KT_MAX(manager->extra, standing);
	manager->extra = KT_MIN(manager->extra, standing);
	return manager->extra;
}
