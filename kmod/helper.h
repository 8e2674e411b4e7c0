/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A helper thread, and what it shares with those who offer it seats.
 */
#ifndef KTASK_KMOD_HELPER_H
#define KTASK_KMOD_HELPER_H

#include <linux/cpumask.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>

#include "kmod/pool.h"
#include "kmod/prio.h"

struct helper {
	struct list_head idle; /* in the pool's list, while it is idle */
	struct task_struct *task; /* of a worker: NULL until it runs */
	struct vhost_task *worker; /* thread of the caller's process, or NULL */
	struct seat *seat; /* offered or running; under pool_lock */
	int nid; /* node of its memory */
	unsigned long idle_since; /* jiffies */
	refcount_t users; /* the pool, and a caller that has offered a seat */

	/* Who holds this lends or takes back; lent is true between. */
	struct mutex prio_lock;
	bool lent;

	/* Of the caller that took it from the list. */
	unsigned int placed; /* generation of the CPUs that it was placed in */
	cpumask_var_t cpus; /* where it was placed */
	cpumask_var_t wanted;
};

/* Protects the list of idle helpers and the states of all seats. */
extern spinlock_t pool_lock;

/* helper_make - an idle helper on @nid, not in any list; NULL: no memory */
struct helper *helper_make(int nid);

/* helper_end - stop an idle helper that is in no list */
void helper_end(struct helper *h);

/*
 * A caller looks at its helper when that may have left the seat already:
 * helper_get - by whoever offers a seat
 * helper_put - when it is withdrawn, or has been waited for
 *
 * Workers of a process (kmod/worker.c) live as long as their job.
 */
void helper_get(struct helper *h);
void helper_put(struct helper *h);

/* helper_idle - by helper.c: it may be offered a seat again */
void helper_idle(struct helper *h);

/*
 * What kernel threads and workers of a process (kmod/worker.c) have in common.
 * helper_init - zeroed memory becomes a helper on @nid; 0 or -ENOMEM
 * helper_take_seat - by the helper: the seat that is offered to it, or NULL
 * helper_leave_seat - by the helper; the seat may be gone afterwards
 */
int helper_init(struct helper *h, int nid);
void helper_exit(struct helper *h);
struct seat *helper_take_seat(struct helper *h);
void helper_leave_seat(struct helper *h, struct seat *seat);

/* helper_place - run on @h->wanted; false if that is not possible */
bool helper_place(struct helper *h, unsigned int generation);

/* helper_lend - raise it to the caller's priority while it is in @seat */
bool helper_lend(struct helper *h, struct seat *seat, struct prio *given);

/* helper_kill - while it is in @seat, so that it waits for nothing that a killed
 * process would not wait for; its chunk fails */
void helper_kill(struct helper *h, struct seat *seat);

#endif /* KTASK_KMOD_HELPER_H */
