/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The pool: helper threads that wait for work items of jobs.
 *
 * A struct pool_item is the pool's part of a work item.  The job's caller owns it and
 * submits it to one helper; a helper takes one item at a time.  The protocol is in
 * user/pool/user_helper.h.
 */
#ifndef KTASK_USER_POOL_H
#define KTASK_USER_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/caps.h"
#include "core/placement.h"
#include "util/cpus.h"
#include "user/pool/user_prio.h"

#define POOL_MAX 1024

struct helper;

/* What one helper is submitted for. */
struct pool_item {
	/* What the helper does; runs on the helper.  False: it could not begin,
	 * and the item stays queued for it, to be tried again soon. */
	bool (*work)(struct pool_item *item);
	const struct kt_cpus *cpus; /* run on these, */
	enum kt_placement_level
		level; /* on the preferred ones or on all of them */
	bool anywhere; /* on the CPU of the submitting thread too */
	uint64_t now_ns; /* about when it is submitted */

	/* The pool's, valid while submitted. */
	struct helper *helper;
	uint32_t ticket;
	bool submitted; /* the caller's note: and not yet collected */
};

enum pool_item_state { POOL_ITEM_DONE, POOL_ITEM_QUEUED, POOL_ITEM_RUNNING };

/*
 * pool_enter, pool_leave - bracket the jobs of this process
 *
 * pool_enter() makes missing helpers for @wanted items, on @cpus, if no other job runs.
 * Creating a thread takes the lock of the address space for writing, which would stall
 * chunks that populate memory.
 */
void pool_enter(unsigned wanted, const struct kt_cpus *cpus);
void pool_leave(void);

/*
 * pool_more - make helpers until @nr of them idle, if the process may have them
 *
 * It does so even while jobs run.  The helpers with which a job begins are made by
 * pool_enter() instead, if it overlaps no other job.
 */
void pool_more(unsigned nr, const struct kt_cpus *cpus);

/* pool_watch_forks - what pool_enter() does besides: for jobs without helpers */
void pool_watch_forks(void);

/* pool_check_fork - notice a fork without handlers; after pool_enter() or
 * pool_watch_forks() */
void pool_check_fork(void);

/*
 * pool_submit - give @item to an idle helper
 * @node: prefer a helper that last ran on this dense node index; -1 any
 *
 * Return: false when no helper is idle.
 */
bool pool_submit(struct pool_item *item, int node);

enum pool_item_state pool_item_state(const struct pool_item *item);

/* pool_item_blocks - by the helper in @item, which waits more than it computes: run at the
 * priority for that until it leaves the item */
void pool_item_blocks(struct pool_item *item);

/* pool_item_lower - by the helper in @item, which another thread has raised: go to the lowest
 * priority again, unless the caller waits for the item and has lent its own */
void pool_item_lower(struct pool_item *item);

/* pool_item_was_raised - by the helper in @item: has it the lowest priority no more, although
 * the caller has lent it nothing, and the process does not end?  A system call. */
bool pool_item_was_raised(const struct pool_item *item);

/*
 * pool_item_cpus - by the helper in @item, which may run anywhere on the item's CPUs
 * @cpus: set to those that it may use
 *
 * Return: false if these are the item's; true if others have changed them, as taskset(1) and
 * control groups do.
 */
bool pool_item_cpus(const struct pool_item *item, struct kt_cpus *cpus);

/* pool_item_tid - the helper's thread, while the item is running */
uint32_t pool_item_tid(const struct pool_item *item);

/* pool_item_cpu_ns - CPU time of that thread so far; UINT64_MAX if unknown */
uint64_t pool_item_cpu_ns(const struct pool_item *item);

/* pool_cancel - take back @item, about now; false if a helper has begun */
bool pool_cancel(struct pool_item *item, uint64_t now_ns);

/*
 * pool_wait - wait until the helper has left the item, or could not begin
 *
 * Lends it the calling thread's priority if it takes long.
 *
 * Return: true if the priority was lent.
 */
bool pool_wait(struct pool_item *item);

/* pool_busy - is there a job in this process? */
bool pool_busy(void);

/* pool_helpers - helper threads that exist now */
unsigned pool_helpers(void);

/* pool_generation - changes in the child of a fork, where no helper exists */
uint32_t pool_generation(void);

/* pool_closing - the process exits: leave at the next chunk */
bool pool_closing(void);

/* pool_refresh - the machine has changed: set its caps anew */
void pool_refresh(void);

/* pool_machine - the cap of all helpers; pool_node - of a node, or NULL */
struct kt_cap *pool_machine(void);
struct kt_cap *pool_node(int index);

/* pool_on_fork_child - in user_job.c: called in the child, after the pool is empty again */
void pool_on_fork_child(void);

/* pool_spinning - helpers that are awake and spin for the next job */
unsigned pool_spinning(void);

/* pool_cpu_ns - CPU time of the helper threads that exist now, all together */
uint64_t pool_cpu_ns(void);

/*
 * pool_hurry - lend the caller's priority to a helper that shall leave and gets no CPU
 *
 * Does not wait: the caller goes on.  Return: whether it was lent.
 */
bool pool_hurry(struct pool_item *item);

#endif /* KTASK_USER_POOL_H */
