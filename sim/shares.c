/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See shares.h. */
#include <string.h>

#include "core/share.h"
#include "sim/shares.h"

/* Jobs take turns of this length at what cannot be divided evenly. */
#define TURN_NS 8000000
/* An overload ends after OVERLOAD_REFRESHES refreshes in a row that found idle
 * CPUs, and at the latest OVERLOAD_NS after it was last seen. */
#define OVERLOAD_NS 1000000000
#define OVERLOAD_REFRESHES 3

static struct {
	unsigned permits;
	struct sim_job *jobs[SIM_JOBS_MAX];
	uint32_t wanted[SIM_JOBS_MAX];
	unsigned nr_jobs; /* entries from this one on are free */
	uint32_t changes;
	uint64_t seen_ns; /* when the overload was last seen */
	unsigned refreshes; /* until it is over; 0: there is none */
} shares;

void shares_reset(unsigned permits)
{
	memset(&shares, 0, sizeof(shares));
	shares.permits = permits;
}

void shares_set_permits(unsigned permits)
{
	shares.permits = permits;
	shares.changes++;
}

void shares_register(struct sim_job *job)
{
	job->entry = -1;
	for (unsigned i = 0; i < SIM_JOBS_MAX; i++) {
		if (shares.jobs[i])
			continue;
		shares.jobs[i] = job;
		shares.wanted[i] = job->ctx.wanted - 1;
		shares.nr_jobs = KT_MAX(shares.nr_jobs, i + 1);
		shares.changes++;
		job->entry = (int)i;
		break;
	}
	job->ctx.changes = &shares.changes;
}

void shares_unregister(struct sim_job *job)
{
	if (job->entry < 0)
		return;
	shares.jobs[job->entry] = NULL;
	shares.wanted[job->entry] = 0;
	while (shares.nr_jobs && !shares.jobs[shares.nr_jobs - 1])
		shares.nr_jobs--;
	shares.changes++;
	job->entry = -1;
}

unsigned shares_threads(struct sim_job *job, unsigned wanted, uint64_t now_ns,
			uint64_t *until_ns)
{
	uint32_t *mine = &shares.wanted[job->entry];
	uint32_t wants[SIM_JOBS_MAX];
	uint32_t sum = 0;
	unsigned nr = 0, self = 0;

	if (*mine != wanted - 1)
		shares.changes++;
	*mine = wanted - 1;
	for (unsigned i = 0; i < shares.nr_jobs; i++) {
		if (!shares.jobs[i])
			continue;
		if (shares.jobs[i] == job)
			self = nr;
		sum += shares.wanted[i];
		wants[nr++] = shares.wanted[i];
	}
	if (sum > shares.permits)
		*until_ns = (now_ns / TURN_NS + 1) * TURN_NS;
	return 1 + kt_share(shares.permits, wants, nr, self, now_ns / TURN_NS);
}

static unsigned idle_threads(unsigned own)
{
	unsigned cpus = 0, running = sim_runnable();
	unsigned others = running > own ? running - own : 0;

	for (unsigned i = 0; i < sim_machine()->nr_cpus; i++)
		cpus += sim_is_online(i);
	return others < cpus ? cpus - others : 1;
}

unsigned shares_in_overload(unsigned own, unsigned wanted)
{
	unsigned capacity;

	if (!shares.refreshes || wanted < 2)
		return wanted;
	capacity = idle_threads(own);
	if (sim_now() - shares.seen_ns >= OVERLOAD_NS)
		shares.refreshes = 0;
	else
		shares.refreshes = capacity < wanted ? OVERLOAD_REFRESHES
						     : shares.refreshes - 1;
	return shares.refreshes ? KT_MIN(capacity, wanted) : wanted;
}

void shares_overload_seen(void)
{
	shares.seen_ns = sim_now();
	shares.refreshes = OVERLOAD_REFRESHES;
}
