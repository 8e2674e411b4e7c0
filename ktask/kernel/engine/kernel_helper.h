/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A helper thread, and what it shares with those who submit work items to it.
 *
 * Locking, for struct helper:
 *	P: under pool_lock; item is also read without it: READ_ONCE()
 *	L: under prio_lock, which a helper takes when it has left its item
 *	C: the caller that took it from the list; of a process helper cpus is its own
 *	I: set when it is made; task of a process helper before its first item
 *	R: a reference counter
 */
#ifndef KTASK_KERNEL_HELPER_H
#define KTASK_KERNEL_HELPER_H

#include <linux/cpumask.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>

#include "kernel/engine/kernel_pool.h"
#include "kernel/engine/kernel_prio.h"

struct helper {
	struct list_head idle; /* P: in the pool's list while it is idle */
	struct task_struct *task; /* I: process helper: NULL until it runs */
	struct vhost_task *thread; /* I: of a process helper, else NULL */
	struct pool_item *item; /* P: queued or running */
	int nid; /* I: node of its memory */
	unsigned long idle_since; /* P: jiffies */
	refcount_t users; /* R: the pool, and a caller that has submitted */
	u64 charged_ns; /* CPU time charged so far; its own thread's */

	/* Held to lend a priority and to take it back; lent is true in between. */
	struct mutex prio_lock;
	bool lent; /* L */

	/* Of the caller that took it from the list. */
	unsigned int placed; /* C: generation of the CPUs it was placed in */
	cpumask_var_t cpus; /* C: where it was placed */
	cpumask_var_t wanted; /* C */
};

/* Protects the list of idle helpers and the states of all items. */
extern spinlock_t pool_lock;

/* helper_make - an idle helper on @nid, not in any list; NULL: no memory */
struct helper *helper_make(int nid);

/* helper_end - stop an idle helper that is in no list */
void helper_end(struct helper *h);

/*
 * References, because a caller may use a helper that has left the item already:
 * helper_get - called by the thread that submits an item
 * helper_put - called when the item was cancelled, or was waited for
 *
 * Process helpers (kernel/engine/process_helper.c) live as long as their job.
 */
void helper_get(struct helper *h);
void helper_put(struct helper *h);

/* helper_idle - called by kernel_helper.c: the helper can be given an item again */
void helper_idle(struct helper *h);

/*
 * What kernel threads and process helpers have in common.
 * helper_init - zeroed memory becomes a helper on @nid; 0 or -ENOMEM
 * helper_begin_item - by the helper: the item that was submitted to it, or NULL
 * helper_leave_item - by the helper; the item may be gone afterwards
 */
int helper_init(struct helper *h, int nid);
void helper_exit(struct helper *h);
struct pool_item *helper_begin_item(struct helper *h);
void helper_leave_item(struct helper *h, struct pool_item *item);

/* helper_place - run on @h->wanted; false if that is not possible, or while a CPU
 * comes or goes */
bool helper_place(struct helper *h, unsigned int generation);

/* helper_wake - wake it for an item, on @cpu if it may run there and the scheduler does not
 * choose a better one */
void helper_wake(struct helper *h, int cpu);

/* helper_lend - raise it to the caller's priority while it is in @item */
bool helper_lend(struct helper *h, struct pool_item *item, struct prio *given);

/* helper_kill - send SIGKILL to a helper that is in @item, so that its chunk waits for nothing
 * that a killed process would not wait for; the chunk fails */
void helper_kill(struct helper *h, struct pool_item *item);

#endif /* KTASK_KERNEL_HELPER_H */
