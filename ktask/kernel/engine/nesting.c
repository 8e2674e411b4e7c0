// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nesting: which job a thread is in, for jobs inside jobs, and for whom it works.
 *
 * A module cannot add a field to struct task_struct.  So a small hash table holds each
 * thread that works on a job which may have helpers.
 *
 * Locking: a bucket's lock protects its list.  An entry is on the stack of its thread,
 * which alone adds and removes it.
 */
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "kernel/compat.h"
#include "kernel/engine/kernel_job.h"

#define BITS 6

static struct bucket {
	spinlock_t lock;
	struct hlist_head head;
} job_buckets[1 << BITS] = {
	[0 ... (1 << BITS) - 1] = {
		.lock = __SPIN_LOCK_UNLOCKED(job_buckets.lock),
	},
};

static struct bucket *bucket_of(struct task_struct *task)
{
	return &job_buckets[hash_ptr(task, BITS)];
}

void job_enter(struct job_entry *entry, struct kernel_job *job)
{
	struct bucket *b = bucket_of(current);

	entry->task = current;
	entry->job = job;
	spin_lock(&b->lock);
	hlist_add_head(&entry->node, &b->head);
	spin_unlock(&b->lock);
}

void job_leave(struct job_entry *entry)
{
	struct bucket *b = bucket_of(current);

	kt_assert(entry->task == current);
	spin_lock(&b->lock);
	hlist_del(&entry->node);
	spin_unlock(&b->lock);
}

/* The first found is the innermost; only its own thread removes it. */
struct kernel_job *job_current(void)
{
	struct bucket *b = bucket_of(current);
	struct job_entry *entry;
	struct kernel_job *job = NULL;

	spin_lock(&b->lock);
	hlist_for_each_entry(entry, &b->head, node)
	{
		if (entry->task == current) {
			job = entry->job;
			break;
		}
	}
	spin_unlock(&b->lock);
	return job;
}

/**
 * ktask_task - for which thread the calling thread works
 *
 * For code that chunks may run and that uses limits, signals or groups of its thread.
 *
 * Context: any that may take a spinlock, but no interrupt.
 *
 * Return: in a helper, the thread that called ktask_run(), for nested jobs that of the
 * outermost one; it exists as long as the chunk.  In any other thread, and in a started job
 * for which nobody waits, the calling thread.
 */
struct task_struct *ktask_task(void)
{
	struct task_struct *client = NULL;
	struct kernel_job *job;

	/* Threads without this flag are no helpers. */
	if (current->flags & COMPAT_PF_HELPER) {
		job = job_current();
		client = job ? READ_ONCE(job->client) : NULL;
	}
	return client ?: current;
}
EXPORT_SYMBOL_GPL(ktask_task);
