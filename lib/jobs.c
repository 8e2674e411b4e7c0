/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs of the machine, for people: what all tables say.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "lib/pool.h"
#include "lib/remaining.h"
#include "lib/permits.h"
#include "lib/table.h"

static void tell(struct ktask_job_info *info, const struct demand *demand,
		 uid_t uid, uint64_t now_ns)
{
	memset(info, 0, sizeof(*info));
	info->pid = (int)demand->pid;
	info->uid = uid;
	memcpy(info->name, demand->name, sizeof(info->name) - 1);
	info->helpers = demand->helpers;
	info->wanted = demand->wanted;
	info->units_done = demand->units_done;
	info->units_total = demand->units_total;
	info->elapsed_ns = now_ns - demand->start_ns;
	/* Other users may say anything. */
	if (info->units_done <= info->units_total)
		info->remaining_ns =
			remaining_ns(info->elapsed_ns, info->units_done,
				     info->units_total - info->units_done);
}

/* Where jobs are put, and how many there are. */
struct listing {
	struct ktask_job_info *jobs;
	unsigned nr, found;
	uint64_t now_ns;
};

static void list_table(const char *name, uid_t uid, void *arg)
{
	struct listing *listing = arg;
	struct table_head *head = table_read(name, uid);

	for (uint32_t i = 0; head && i < head->nr_demands; i++) {
		if (table_silent(head->demands[i].seen_ns, listing->now_ns,
				 PERMITS_SILENT_NS))
			continue;
		if (listing->found++ < listing->nr)
			tell(&listing->jobs[listing->found - 1],
			     &head->demands[i], uid, listing->now_ns);
	}
	free(head);
}

unsigned ktask_jobs(struct ktask_job_info *jobs, unsigned nr,
		    struct ktask_slots_info *info)
{
	struct listing listing = { jobs, nr, 0, kt_now_ns() };
	int saved = errno;
	int cancel_state;
	bool all;

	/* Reading may be a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	all = table_each(list_table, &listing);
	if (info) {
		info->limit = pool_machine()->limit;
		info->used = permits_used();
		info->shared = permits_shared();
		info->cut = !all;
	}
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return listing.found;
}
