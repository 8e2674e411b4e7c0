/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See sim_shares.h. */
#include <string.h>

#include "core/share.h"
#include "sim/sim_shares.h"

/* Jobs take turns of this length at what cannot be divided evenly. */
#define TURN_NS 8000000
/* An overload ends after OVERLOAD_REFRESHES refreshes in a row that found idle
 * CPUs, and at the latest OVERLOAD_NS after it was last seen. */
#define OVERLOAD_NS 1000000000
#define OVERLOAD_REFRESHES 3
/* One that was only counted, when a job began, ends sooner: then helpers are
 * tried, and for OVERLOAD_NS no job counts again. */
#define COUNTED_NS 200000000

static struct {
	unsigned permits;
	struct sim_job *jobs[SIM_JOBS_MAX];
	uint32_t wanted[SIM_JOBS_MAX];
	unsigned nr_jobs; /* entries from this one on are free */
	uint32_t changes;
	uint64_t seen_ns; /* when the overload was last seen */
	unsigned refreshes; /* until it is over; 0: there is none */
	uint64_t tried_ns; /* when one last ended without idle CPUs */
	uint64_t entries_read; /* of other jobs, for statistics */
} sim_shares;

void shares_reset(unsigned permits)
{
	memset(&sim_shares, 0, sizeof(sim_shares));
	sim_shares.permits = permits;
}

void shares_set_permits(unsigned permits)
{
	sim_shares.permits = permits;
	sim_shares.changes++;
}

void shares_register(struct sim_job *job)
{
	job->entry = -1;
	for (unsigned i = 0; i < SIM_JOBS_MAX; i++) {
		if (sim_shares.jobs[i])
			continue;
		sim_shares.jobs[i] = job;
		sim_shares.wanted[i] = job->ctx.wanted - 1;
		sim_shares.nr_jobs = KT_MAX(sim_shares.nr_jobs, i + 1);
		sim_shares.changes++;
		job->entry = (int)i;
		break;
	}
	job->ctx.changes = &sim_shares.changes;
}

void shares_unregister(struct sim_job *job)
{
	if (job->entry < 0)
		return;
	sim_shares.jobs[job->entry] = NULL;
	sim_shares.wanted[job->entry] = 0;
	while (sim_shares.nr_jobs && !sim_shares.jobs[sim_shares.nr_jobs - 1])
		sim_shares.nr_jobs--;
	sim_shares.changes++;
	job->entry = -1;
}

unsigned shares_threads(struct sim_job *job, unsigned wanted, uint64_t now_ns,
			uint64_t *until_ns)
{
	uint32_t *mine = &sim_shares.wanted[job->entry];
	uint32_t wants[SIM_JOBS_MAX];
	uint32_t sum = 0;
	unsigned nr = 0, self = 0;

	if (*mine != wanted - 1)
		sim_shares.changes++;
	*mine = wanted - 1;
	for (unsigned i = 0; i < sim_shares.nr_jobs; i++) {
		if (!sim_shares.jobs[i])
			continue;
		sim_shares.entries_read++;
		if (sim_shares.jobs[i] == job)
			self = nr;
		sum += sim_shares.wanted[i];
		wants[nr++] = sim_shares.wanted[i];
	}
	if (sum > sim_shares.permits)
		*until_ns = (now_ns / TURN_NS + 1) * TURN_NS;
	return 1 +
	       kt_share(sim_shares.permits, wants, nr, self, now_ns / TURN_NS);
}

uint64_t shares_entries_read(void)
{
	return sim_shares.entries_read;
}

static unsigned online_cpus(void)
{
	unsigned cpus = 0;

	for (unsigned i = 0; i < sim_machine()->nr_cpus; i++)
		cpus += sim_is_online(i);
	return cpus;
}

static unsigned idle_threads(unsigned own)
{
	unsigned cpus = online_cpus(), running = sim_runnable();
	unsigned others = running > own ? running - own : 0;

	return others < cpus ? cpus - others : 1;
}

unsigned shares_in_overload(unsigned own, unsigned wanted)
{
	unsigned capacity;

	if (!sim_shares.refreshes || wanted < 2)
		return wanted;
	capacity = idle_threads(own);
	if (sim_now() - sim_shares.seen_ns >= OVERLOAD_NS) {
		sim_shares.refreshes = 0;
		sim_shares.tried_ns = sim_now();
	} else {
		sim_shares.refreshes = capacity < wanted
					       ? OVERLOAD_REFRESHES
					       : sim_shares.refreshes - 1;
	}
	return sim_shares.refreshes ? KT_MIN(capacity, wanted) : wanted;
}

bool shares_overload_begins(void)
{
	if (sim_shares.refreshes)
		return shares_in_overload(1, 2) < 2;
	if (sim_now() - sim_shares.tried_ns < OVERLOAD_NS)
		return false;
	/* The caller is one of them, and helpers of other jobs give way. */
	if (sim_runnable() < online_cpus() + 1 + sim_host_permits_used())
		return false;
	sim_shares.seen_ns = sim_now() - (OVERLOAD_NS - COUNTED_NS);
	sim_shares.refreshes = OVERLOAD_REFRESHES;
	return true;
}

void shares_overload_seen(void)
{
	sim_shares.seen_ns = sim_now();
	sim_shares.refreshes = OVERLOAD_REFRESHES;
}
