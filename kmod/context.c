// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which job a thread is in, for jobs inside jobs.
 *
 * A module has no place of its own in a task, so whoever works on a job that
 * may have helpers is in a small hash table meanwhile.
 */
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "kmod/run.h"

#define BITS 6

static struct bucket {
	spinlock_t lock;
	struct hlist_head head;
} buckets[1 << BITS] = {
	[0 ... (1 << BITS) - 1] = {
		.lock = __SPIN_LOCK_UNLOCKED(buckets.lock),
	},
};

static struct bucket *bucket_of(struct task_struct *task)
{
	return &buckets[hash_ptr(task, BITS)];
}

void run_enter(struct run_context *context, struct run *run)
{
	struct bucket *b = bucket_of(current);

	context->task = current;
	context->run = run;
	spin_lock(&b->lock);
	hlist_add_head(&context->node, &b->head);
	spin_unlock(&b->lock);
}

void run_leave(struct run_context *context)
{
	struct bucket *b = bucket_of(current);

	spin_lock(&b->lock);
	hlist_del(&context->node);
	spin_unlock(&b->lock);
}

/* The first found is the innermost; only its own thread removes it. */
struct run *run_current(void)
{
	struct bucket *b = bucket_of(current);
	struct run_context *context;
	struct run *run = NULL;

	spin_lock(&b->lock);
	hlist_for_each_entry(context, &b->head, node)
	{
		if (context->task == current) {
			run = context->run;
			break;
		}
	}
	spin_unlock(&b->lock);
	return run;
}
