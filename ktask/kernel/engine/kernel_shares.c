// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shares: one entry for each job that wants helpers; core/share.c deals.
 *
 * Behaves badly with more jobs at once than there are entries: those that come
 * later do their work alone.
 *
 * Locking: entries_lock protects all data of this file.  A job is there while it is
 * registered, so that shares_show() may read it under the lock.
 */
#include <linux/bitmap.h>
#include <linux/ctype.h>
#include <linux/jiffies.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>

#include "core/share.h"
#include "kernel/engine/kernel_job.h"
#include "kernel/engine/kernel_shares.h"

#define ENTRIES 256
/* Helpers that cannot be divided evenly go to other jobs this often. */
#define TURN_MS 20

static DEFINE_SPINLOCK(entries_lock);
static DECLARE_BITMAP(used_entries, ENTRIES);
static uint32_t wanted_helpers[ENTRIES];
static struct kernel_job *entry_jobs[ENTRIES];
static unsigned int nr_entries; /* all entries from this index on are free */

int shares_register(struct kernel_job *job, unsigned int helpers)
{
	int entry;

	spin_lock(&entries_lock);
	entry = (int)find_first_zero_bit(used_entries, ENTRIES);
	if (entry < ENTRIES) {
		__set_bit(entry, used_entries);
		wanted_helpers[entry] = helpers;
		entry_jobs[entry] = job;
		nr_entries = max(nr_entries, (unsigned int)entry + 1);
	} else {
		entry = -1;
	}
	spin_unlock(&entries_lock);
	return entry;
}

void shares_unregister(int entry)
{
	if (entry < 0)
		return;
	spin_lock(&entries_lock);
	__clear_bit(entry, used_entries);
	wanted_helpers[entry] = 0;
	while (nr_entries && !test_bit(nr_entries - 1, used_entries))
		nr_entries--;
	spin_unlock(&entries_lock);
}

unsigned int shares_helpers(int entry, unsigned int helpers, unsigned int limit)
{
	unsigned int share;

	if (entry < 0)
		return 0;
	spin_lock(&entries_lock);
	wanted_helpers[entry] = helpers;
	share = kt_share(limit, wanted_helpers, nr_entries, entry,
			 jiffies_to_msecs(jiffies) / TURN_MS);
	spin_unlock(&entries_lock);
	return share;
}

/* A process chooses its name, so control characters are shown as question marks. */
static void show_name(struct seq_file *m, const char *name)
{
	for (; *name; name++)
		seq_putc(m, iscntrl(*name) ? '?' : *name);
}

static void show_job(struct seq_file *m, struct kernel_job *job,
		     uint32_t helpers)
{
	const struct kt_context *ctx = &job->ctx;

	seq_printf(m, "%d ", job->pid);
	show_name(m, job->comm);
	seq_printf(m, " %ps %llu/%llu helpers %u wanted %u ns %llu\n",
		   job->ctl->thread_func, kt_context_units(ctx),
		   ctx->units_total, kt_load(&ctx->job.threads) - 1, helpers,
		   kt_now_ns() - ctx->start_ns);
}

void shares_show(struct seq_file *m)
{
	unsigned int entry;

	spin_lock(&entries_lock);
	for_each_set_bit(entry, used_entries, ENTRIES)
		show_job(m, entry_jobs[entry], wanted_helpers[entry]);
	spin_unlock(&entries_lock);
}
