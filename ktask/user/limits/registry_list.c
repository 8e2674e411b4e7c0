/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Lists the jobs of the machine from the registries of all users, for people.  One
 * job of this process is user/user_job.c's.
 */
#include <stdlib.h>
#include <string.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "user/pool/user_pool.h"
#include "util/remaining.h"
#include "user/limits/permits.h"
#include "user/limits/registry.h"
#include "util/scoped.h"

static void fill_info(struct ktask_job_info *info,
		      const struct registry_entry *entry, uid_t uid,
		      uint64_t now_ns)
{
	memset(info, 0, sizeof(*info));
	info->pid = (int)entry->pid;
	info->uid = uid;
	memcpy(info->name, entry->name, sizeof(info->name) - 1);
	info->helpers = entry->helpers;
	info->wanted = entry->wanted;
	info->units_done = entry->units_done;
	info->units_total = entry->units_total;
	info->elapsed_ns = now_ns - entry->start_ns;
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

static void list_registry(const char *name, uid_t uid, void *arg)
{
	struct listing *listing = arg;
	struct registry_head *head = registry_read(name, uid);

	for (uint32_t i = 0; head && i < head->nr_entries; i++) {
		if (registry_entry_silent(head->entries[i].seen_ns,
					  listing->now_ns, ENTRY_SILENT_NS))
			continue;
		if (listing->found++ < listing->nr)
			fill_info(&listing->jobs[listing->found - 1],
				  &head->entries[i], uid, listing->now_ns);
	}
	free(head);
}

unsigned ktask_jobs(struct ktask_job_info *jobs, unsigned nr,
		    struct ktask_permits_info *info)
{
	struct listing listing = { jobs, nr, 0, kt_now_ns() };
	keep_errno();
	bool all;

	/* Reading may be a cancellation point. */
	block_cancellation();
	all = registry_for_each(list_registry, &listing);
	if (info) {
		info->limit = pool_machine()->limit;
		info->used = permits_used();
		info->shared = permits_shared();
		info->cut = !all;
	}
	return listing.found;
}
