/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pool: kernel threads that wait for work items.
 *
 * A work item is what one helper is submitted for, owned by the job's caller; a
 * helper runs one at a time:
 *
 *   caller submits --> QUEUED --helper begins--> RUNNING --helper--> DONE
 *                         `------caller cancels----------------------^
 *
 * States change under the pool's lock, which no client code runs under.
 *
 * Locking, for struct pool_item:
 *	C: the caller of its job, while no helper has begun it
 *	P: written under pool_lock (kernel/engine/kernel_helper.h); read by any thread:
 *	   READ_ONCE(), and DONE by smp_load_acquire(): pool_item_state()
 *	The helper completes done once for each submission that it has begun.
 */
#ifndef KTASK_KERNEL_POOL_H
#define KTASK_KERNEL_POOL_H

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/types.h>

#include "core/caps.h"

struct delayed_work;
struct helper;
struct task_struct;

enum pool_item_state { POOL_ITEM_DONE, POOL_ITEM_QUEUED, POOL_ITEM_RUNNING };

/* What the pool keeps of a work item. */
struct pool_item {
	/* What the helper does; runs on the helper.  C */
	void (*work)(struct pool_item *item);

	/* The pool's, valid from the submission on. */
	struct helper *helper; /* C */
	enum pool_item_state state; /* P */
	struct completion done;
};

/*
 * pool_init - begin
 * @boots: the kernel boots, and until pool_end_boot() nobody else needs the CPUs: make
 *	helpers for all CPUs but one, unless no helpers are allowed at all
 */
int pool_init(bool boots);
void pool_end_boot(void);

/* pool_boots - is the time between these two?  Then jobs are not measured, because the clock
 * advances only with each tick, and their helpers may begin on busy CPUs. */
bool pool_boots(void);

/* pool_exit - end all helpers; there must be no jobs any more */
void pool_exit(void);

/* pool_machine - the cap of all helpers; pool_node - that of a node's, or NULL */
struct kt_cap *pool_machine(void);
struct kt_cap *pool_node(int nid);

static inline bool pool_is_full(const struct kt_cap *cap)
{
	return kt_load(&cap->used) >= kt_load(&cap->limit);
}

/*
 * pool_submit - hand @item to an idle helper
 * @nid: node that the helper should be of, or NUMA_NO_NODE
 * @own: CPUs of the caller, which it must run on
 * @only: NULL, or a second set of CPUs that it must run on.  If no CPU of the
 *        node is in both sets, the node is ignored.
 * @cpu: the CPU to wake it on, one of those above; -1: the scheduler chooses
 *
 * By the job's caller only.  If no helper is idle, more are made in the
 * background.  A job never waits for that.
 *
 * Return: false when none is idle, or none may run there.
 */
bool pool_submit(struct pool_item *item, int nid, const struct cpumask *own,
		 const struct cpumask *only, int cpu);

/* pool_submit_to - the same to a process helper; @h is idle */
bool pool_submit_to(struct helper *h, struct pool_item *item, int nid,
		    const struct cpumask *own, const struct cpumask *only);

/* pool_item_state - if it is DONE, the caller sees all that the helper wrote (acquire) */
static inline enum pool_item_state pool_item_state(const struct pool_item *item)
{
	return smp_load_acquire(&item->state);
}

/* pool_cancel - take @item back; false if a helper has begun */
bool pool_cancel(struct pool_item *item);

/*
 * pool_wait - wait until the helper has left the item
 * @killable: if the calling thread is killed, so is what the helper does
 *
 * Must be called for every item that was submitted and not cancelled, even if its state is
 * DONE: the helper may still use the item for a moment.  Lends the calling thread's
 * priority to the helper if the wait takes long.
 *
 * Return: true if the priority was lent.
 */
bool pool_wait(struct pool_item *item, bool killable);

/* pool_later - run @work after a short time, in a kernel worker */
void pool_later(struct delayed_work *work);

/* For statistics and tests. */
unsigned int pool_helpers(void);

#endif /* KTASK_KERNEL_POOL_H */
