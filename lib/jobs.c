/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs of the machine, for people: what all tables say.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ktask/ktask.h>

#include "core/deps.h"
#include "lib/pool.h"
#include "lib/remaining.h"
#include "lib/slots.h"
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

/* Return: is there such a table? */
static bool list_table(struct listing *listing, const char *name)
{
	int64_t uid = table_user(name);
	struct table_head *head = uid < 0 ? NULL : table_read(name, (uid_t)uid);
	bool there = head;

	for (uint32_t i = 0; head && i < head->nr_demands; i++) {
		if (table_silent(head->demands[i].seen_ns, listing->now_ns,
				 SLOTS_SILENT_NS))
			continue;
		if (listing->found++ < listing->nr)
			tell(&listing->jobs[listing->found - 1],
			     &head->demands[i], (uid_t)uid, listing->now_ns);
	}
	free(head);
	return there;
}

/* Return: false where the folder has more than is read of it. */
static bool list_tables(struct listing *listing)
{
	unsigned names = 0, tables = 0;
	DIR *dir = opendir(TABLE_DIR);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && names < TABLE_NAMES_MOST &&
	       tables < TABLES_MOST) {
		names++;
		tables += list_table(listing, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return !dir || !entry;
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
	all = list_tables(&listing);
	if (info) {
		info->limit = pool_machine()->limit;
		info->used = slots_used();
		info->shared = slots_shared();
		info->cut = !all;
	}
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return listing.found;
}
