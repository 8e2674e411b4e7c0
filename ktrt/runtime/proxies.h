/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Weak dependences, and dependences that are released early (ideas of OmpSs-2: Perez et
 * al., "Improving the integration of task nesting and dependencies in OpenMP", IPDPS
 * 2017).
 *
 * A dependence of such a task is entered for a *proxy* in place of the task: a record
 * that is never queued.  It is ready when the data is, and complete when the data is
 * released.  In the chains of the task's own children up to two more records stand for
 * it:
 *
 *	outer	a member of the parent's chain, where the task would be one
 *	gate	weak: the first member of the children's chain; it is complete once
 *		@outer is ready, and children come after it
 *	end	the last member of that chain, from when the task no longer uses the
 *		data; @outer is complete once @end is ready
 *
 * So children wait for what comes before their parent, and what comes after it waits for
 * those children that use the data, by nothing but chains.  A dependence that is not weak
 * has no gate: the task waits for @outer.  Without memory for @end, or after a failure, the
 * data is released when the task is complete; so is data that another dependence names
 * which no proxy stands for.  External events keep only data that the task does not name
 * weakly: their proxies have an end, too, but wait for the task as well.
 *
 * Behaves badly in memory: a proxy holds three whole records of tasks, 1.5 KiB, and each
 * such task asks for its own.
 *
 * proxies_enter.c makes them, proxies.c does what is left to do.
 *
 * Locking: that of dependences.h, and
 *
 *	M: the thread that makes the task, before anything is entered
 */
#ifndef RUNTIME_PROXIES_H
#define RUNTIME_PROXIES_H

#include "domain.h"

struct proxy {
	struct ktrt_task outer, gate, end;
	struct proxies *all; /* M */
	struct ktrt_dep dep; /* not weak; M */
	bool weak; /* the task does not wait for it; M */
	bool was_weak; /* named weakly alone, although the task may wait; M */
	bool kept; /* has data that no proxy stands for elsewhere; M */
	bool ended; /* there is @end; B, E */
	/* Weak, and the task was complete without @end; E, before ->left */
	bool unended;
	bool held; /* events keep it until the task is complete; B, E */
	/* Until it is complete: @outer is ready, @end is, and if @held the task is
	 * complete; A */
	uint32_t left;
	uint32_t late; /* A: one of */
};

/* What comes next is skipped.  It waits until the task is complete, so that the code of
 * whatever failed is known before that. */
#define LATE_WAITS 1
#define LATE_COMPLETE 2

/* Bytes [start, end). */
struct span {
	uintptr_t start, end;
};

struct proxies {
	struct ktrt_task *task; /* M */
	uint32_t holds; /* proxies that are not complete, and the task; A */
	uint32_t closed; /* gates that are; A */
	size_t nr; /* M */
	struct span *
		writes; /* what the task names to write, by proxies or not; M */
	size_t nr_writes; /* M */
	CACHE_ALIGNED struct proxy each[]; /* M */
};

/* What a thread has still to handle.  A chain of proxies may be long, so none is handled
 * inside of another. */
struct proxy_work {
	struct ready records, tasks;
};

void proxy_work_begin(struct proxy_work *work);
/* Tasks may be done right here if there is no memory to queue them, so they come last. */
void proxy_work_finish(struct worker *w, struct proxy_work *work);
/* The record is complete; proxy_work_finish() handles what that makes ready. */
void proxy_leave(struct worker *w, struct ktrt_task *record);
/* The task, or one of its proxies, needs their memory no more. */
void proxies_drop(struct proxies *all);

static inline bool deps_overlap(const struct ktrt_dep *a,
				const struct ktrt_dep *b)
{
	uintptr_t a_start, a_end, b_start, b_end;

	dep_bounds(a, &a_start, &a_end);
	dep_bounds(b, &b_start, &b_end);
	return a_start < b_end && b_start < a_end;
}

/* Into the chains of the task's children; 0 or -ENOMEM.  Unless that sets *@ready the record
 * may be complete, and gone, by then. */
int proxy_enter_inside(struct worker *w, struct ktrt_task *task,
		       struct ktrt_task *record, const struct ktrt_dep *dep,
		       bool *ready);

#endif /* RUNTIME_PROXIES_H */
