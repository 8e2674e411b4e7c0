/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pool: kernel threads that wait for seats in jobs.
 *
 * A seat is a place in a job, owned by the job's caller; a helper takes one at
 * a time:
 *
 *   caller offers --> OFFERED --helper begins--> RUNNING --helper--> DONE
 *                        `-------caller withdraws--------------------^
 *
 * States change under the pool's lock, which no client code runs under.
 */
#ifndef KTASK_KMOD_POOL_H
#define KTASK_KMOD_POOL_H

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/types.h>

#include "core/caps.h"

struct delayed_work;
struct helper;
struct task_struct;

enum seat_state { SEAT_DONE, SEAT_OFFERED, SEAT_RUNNING };

/* A place in a job for one helper. */
struct seat {
	/* What the helper does; runs on the helper. */
	void (*work)(struct seat *seat);

	/* The pool's, valid while seated. */
	struct helper *helper;
	enum seat_state state;
	struct completion done;
	bool seated; /* the caller's note: offered and not yet collected */
};

int pool_init(void);

/* pool_exit - end all helpers; there are no jobs any more */
void pool_exit(void);

/* pool_machine - the cap of all helpers; pool_node - of a node, or NULL */
struct kt_cap *pool_machine(void);
struct kt_cap *pool_node(int nid);

/*
 * pool_offer - offer @seat to an idle helper
 * @nid: node that the helper should be of, or NUMA_NO_NODE
 * @own: CPUs of the caller, which it must run on
 * @only: NULL, or more that it must run on, besides being the node's (as far as
 *        that leaves any)
 *
 * By the job's caller only.  Where no helper is idle more are made, in the
 * background: a job never waits for that.
 *
 * Return: false when none is idle, or none may run there.
 */
bool pool_offer(struct seat *seat, int nid, const struct cpumask *own,
		const struct cpumask *only);

/* pool_offer_to - the same to a worker of the caller's process; @h is idle */
bool pool_offer_to(struct helper *h, struct seat *seat, int nid,
		   const struct cpumask *own, const struct cpumask *only);

enum seat_state pool_seat_state(const struct seat *seat);

/* pool_withdraw - take back an offer; false if a helper has begun */
bool pool_withdraw(struct seat *seat);

/*
 * pool_wait - wait until the helper has left the seat
 * @killable: if the calling thread is killed, so is what the helper does
 *
 * Must be called for every seat that was not withdrawn, also when its state
 * is DONE: the helper may still be about to let go of it.  Lends the calling
 * thread's priority if it takes long.
 *
 * Return: true if the priority was lent.
 */
bool pool_wait(struct seat *seat, bool killable);

/* pool_later - do it before long, in a thread of the kernel's */
void pool_later(struct delayed_work *work);

/* For statistics and tests. */
unsigned int pool_helpers(void);

#endif /* KTASK_KMOD_POOL_H */
