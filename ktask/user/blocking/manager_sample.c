/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See manager_sample.h. */
#include "user/blocking/user_monitor.h"
#include "user/blocking/manager_sample.h"
#include "user/limits/free_cpus.h"
#include "user/machine/topo.h"

/* Threads are stalled if no unit was done for STALLED_NS plus so many times the usual
 * time of a chunk, of which at most STALLED_MAX_NS count.  For each of them one helper
 * joins, however busy the machine is and whether it pays or not. */
#define STALLED_NS 20000000
#define STALLED_CHUNKS 4
#define STALLED_MAX_NS 200000000

static void sample_helpers(struct thread_sample *seen,
			   const struct kt_helpers *helpers, bool closely)
{
	for (unsigned i = 0; i < kt_load_acquire(&helpers->nr_used); i++)
		thread_sample_add(seen, kt_load(&helpers->items[i].host.tid),
				  closely);
}

static struct thread_sample sample_all(const struct manager *manager,
				       bool closely)
{
	struct thread_sample seen = { 0 };

	thread_sample_add(&seen, manager->caller, closely);
	sample_helpers(&seen, &manager->job->ctx.helpers, closely);
	sample_helpers(&seen, &manager->helpers, closely);
	return seen;
}

/* A thread that waits for the helpers of a nested job is not blocked: they run in
 * its place. */
struct thread_sample sample_working(const struct manager *manager)
{
	struct thread_sample seen = sample_all(manager, false);
	int ready = monitor_ready(seen.working);

	if (ready < 0)
		seen = sample_all(manager, true);
	else
		seen.running = (unsigned)ready;
	seen.running += kt_load(&manager->job->nested);
	return seen;
}

static uint64_t stall_ns(const struct kt_job *job)
{
	uint64_t chunk_ns = kt_split_usual_ns(&job->split, &job->cost);
	uint64_t most = STALLED_MAX_NS / STALLED_CHUNKS;

	return STALLED_NS + STALLED_CHUNKS * KT_MIN(chunk_ns, most);
}

static unsigned stalled_helpers(const struct kt_helpers *helpers,
				struct thread_progress *last, uint64_t now_ns,
				uint64_t long_ns)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < kt_load_acquire(&helpers->nr_used); i++) {
		const struct kt_item *item = &helpers->items[i];

		nr += thread_is_stalled(&last[i], kt_load(&item->host.tid),
					kt_load(&item->worker.units), now_ns,
					long_ns);
	}
	return nr;
}

static unsigned nr_stalled(const struct manager *manager, uint64_t now_ns,
			   uint64_t long_ns)
{
	const struct user_job *job = manager->job;
	struct thread_progress *last = manager->last;
	unsigned nr = thread_is_stalled(last++, manager->caller,
					kt_load(&job->ctx.caller.units), now_ns,
					long_ns);

	nr += stalled_helpers(&job->ctx.helpers, last, now_ns, long_ns);
	last += job->ctx.helpers.nr;
	return nr + stalled_helpers(&manager->helpers, last, now_ns, long_ns);
}

/* While units are done, the rate says how many helpers pay (core/io_concurrency.h).  A thread
 * that waits for a running thread needs none to get on. */
unsigned sample_stalled(struct manager *manager, uint64_t units,
			unsigned running, uint64_t now_ns)
{
	uint64_t long_ns = stall_ns(&manager->job->ctx.job);
	unsigned stalled = nr_stalled(manager, now_ns, long_ns);

	if (units != manager->done) {
		manager->done = units;
		manager->done_ns = now_ns;
	}
	if (!running && now_ns - manager->done_ns >= long_ns)
		manager->extra = KT_MAX(manager->extra, stalled);
	manager->extra = KT_MIN(manager->extra, stalled);
	return manager->extra;
}

void sample_load(struct manager_sample *sample, const struct kt_cpus *allowed)
{
	unsigned nr = cpus_count(allowed);
	int nr_free = FREE_CPUS_UNKNOWN;

	sample->cpus = topo_nr_cpus();
	sample->runnable = limits_running();
	if (nr < sample->cpus)
		nr_free = free_cpus(allowed, sample->now_ns, true);
	if (nr_free == FREE_CPUS_UNKNOWN)
		return;
	/* One is the caller's, and the manager runs as well. */
	sample->cpus = nr;
	sample->runnable = sample->seen.running + 1 + nr -
			   KT_MIN(1 + (unsigned)nr_free, nr);
}
