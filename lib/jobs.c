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

unsigned ktask_jobs(struct ktask_job_info *jobs, unsigned nr,
		    struct ktask_slots_info *info)
{
	uint64_t now_ns = kt_now_ns();
	int saved = errno;
	int cancel_state;
	struct dirent *entry;
	unsigned found = 0;
	DIR *dir;

	/* Reading may be a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	dir = opendir(TABLE_DIR);

	while (dir && (entry = readdir(dir))) {
		int64_t uid = table_user(entry->d_name);
		struct table_head *head =
			uid < 0 ? NULL : table_read(entry->d_name, (uid_t)uid);

		for (uint32_t i = 0; head && i < head->nr_demands; i++) {
			if (table_silent(head->demands[i].seen_ns, now_ns,
					 SLOTS_SILENT_NS))
				continue;
			if (found++ < nr)
				tell(&jobs[found - 1], &head->demands[i],
				     (uid_t)uid, now_ns);
		}
		free(head);
	}
	if (dir)
		closedir(dir);
	if (info) {
		info->limit = pool_machine()->limit;
		info->used = slots_used();
		info->shared = slots_shared();
	}
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return found;
}
