/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Lists the jobs of the machine from the registries of all users, for people.  The
 * progress of one job of this process is in user/user_job.c.
 */
#include <limits.h>
#include <string.h>

#include <ktask/ktask.h>

#include "user/pool/user_pool.h"
#include "common/struct_size.h"
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

/* A permit that has moved during a pass may be listed with both jobs.  A helper that lost
 * its CPU where it gives one back is still listed in each of these. */
#define PASSES_MOST 5

/* Where jobs are put, and how many there are. */
struct listing {
	struct ktask_job_info *jobs;
	unsigned nr, found;
	unsigned own_helpers; /* of all jobs of this user, ... */
	unsigned most_helpers; /* of which so many are listed at most */
	uint64_t now_ns;
	uid_t uid; /* of the registry that is read */
};

static void list_entry(const struct registry_entry *entry, void *arg)
{
	struct listing *listing = arg;
	struct ktask_job_info info;

	if (registry_entry_silent(entry->seen_ns, listing->now_ns,
				  ENTRY_SILENT_NS))
		return;
	fill_info(&info, entry, listing->uid, listing->now_ns);
	if (listing->uid == registry_owner()) {
		info.helpers =
			KT_MIN(info.helpers,
			       listing->most_helpers - listing->own_helpers);
		listing->own_helpers += info.helpers;
	}
	if (listing->found++ >= listing->nr)
		return;
	struct_size_write_at(listing->jobs, listing->found - 1, &info,
			     sizeof(info));
}

static void list_registry(const char *name, uid_t uid, void *arg)
{
	struct listing *listing = arg;

	listing->uid = uid;
	registry_read(name, uid, list_entry, listing);
}

static int check_sizes(const struct ktask_job_info *jobs, unsigned nr,
		       const struct ktask_permits_info *permits)
{
	int error = 0;

	if (nr)
		error = jobs ? struct_size_check(jobs->struct_size,
						 STRUCT_SIZE_ONLY)
			     : -EINVAL;
	if (!error && permits)
		error = struct_size_check(permits->struct_size,
					  STRUCT_SIZE_ONLY);
	return error;
}

/* @all: all registries were read */
static struct ktask_permits_info read_permits(unsigned limit, bool all)
{
	return (struct ktask_permits_info){
		.used = permits_used(),
		.limit = limit,
		.shared = permits_shared(),
		.cut = !all,
	};
}

static unsigned list_jobs(struct listing *listing, bool *all)
{
	listing->now_ns = kt_now_ns();
	*all = registry_for_each(list_registry, listing);
	return listing->found;
}

/* Jobs and permits of one moment: no more helpers work than there are permits in use. */
static unsigned list_both(const struct listing *first,
			  struct ktask_permits_info *permits)
{
	/* The first to ask opens the registry, without which none is counted. */
	unsigned limit = pool_machine()->limit, passes = 0;
	struct ktask_permits_info now;
	struct listing listing;
	bool all;

	do {
		listing = *first;
		list_jobs(&listing, &all);
		now = read_permits(limit, all);
	} while (listing.own_helpers > now.used && ++passes < PASSES_MOST);
	if (listing.own_helpers > now.used) {
		listing = *first;
		listing.most_helpers = now.used;
		list_jobs(&listing, &all);
	}
	struct_size_write(permits, &now, sizeof(now));
	return listing.found;
}

int ktask_jobs(struct ktask_job_info *jobs, unsigned nr,
	       struct ktask_permits_info *permits)
{
	struct listing listing = { .jobs = jobs,
				   .nr = nr,
				   .most_helpers = UINT_MAX };
	int error = check_sizes(jobs, nr, permits);
	keep_errno();
	bool all;

	if (error)
		return error;
	/* Reading may be a cancellation point. */
	block_cancellation();
	return (int)(permits ? list_both(&listing, permits)
			     : list_jobs(&listing, &all));
}
