/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Weak dependences, and dependences that are released early (ideas of OmpSs-2: Perez et
 * al., "Improving the integration of task nesting and dependencies in OpenMP", IPDPS
 * 2017).
 *
 * A *proxy* stands for such a dependence of a task.  It has up to three task records,
 * which are members of chains but are never queued:
 *
 *	outer	a member of the chain in the parent's domain, in place of the task; it is
 *		ready when the data is, and complete when the data is released
 *	gate	weak only: the first member of the chain in the task's own domain, so that
 *		the task's children come after it; it is complete once @outer is ready
 *	end	a member that is added to that chain when the task itself no longer uses
 *		the data; @outer is complete once @end is ready
 *
 * So children wait for tasks that come before their parent, and tasks that come after the
 * parent wait only for those children that use the data.  Chains alone do this.  A
 * dependence that is not weak has no gate, because the task itself waits for @outer.
 *
 * The data is released only when the task is complete if there was no memory for @end, if
 * the task or a child failed, or if another dependence that has no proxy names it as well.
 * External events of the task hold data that it does not name weakly: such a proxy has an
 * @end, but is complete only when the task is, too.
 *
 * Behaves badly: a proxy takes three task records, 1 KiB, and the memory for the proxies
 * of a task is allocated for each task.
 *
 * proxies_enter.c enters proxies, proxies.c does everything later.
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
	struct ktrt_dep dep; /* without KTRT_WEAK; M */
	bool weak; /* the task does not wait for it; M */
	bool was_weak; /* no dependence names this data except weakly; M */
	bool kept; /* a dependence without a proxy names the same data; M */
	bool ended; /* @end was entered; B, E */
	/* Weak, and the task was complete without @end; E, before ->left */
	bool unended;
	bool held; /* external events hold it until the task is complete; B, E */
	/* Until it is complete: @outer is ready, @end is, and if @held the task is
	 * complete; A */
	uint32_t left;
	uint32_t late; /* A: one of */
};

/* ->late: tasks that come after it are skipped, because the data is spoilt.  The proxy waits
 * until its task is complete, so that the error code is known before tasks are skipped. */
#define LATE_WAITS 1
#define LATE_COMPLETE 2

/* Bytes [start, end). */
struct span {
	uintptr_t start, end;
};

struct proxies {
	struct ktrt_task *task; /* M */
	uint32_t holds; /* proxies that are not complete, and the task; A */
	uint32_t closed; /* gates that are not complete; A */
	size_t nr; /* M */
	/* What the task names to write, by proxies or not; M */
	struct span *writes;
	size_t nr_writes; /* M */
	CACHE_ALIGNED struct proxy each[]; /* M */
};

/* Records and tasks that became ready and that this thread has still to handle.  They are
 * handled one after another and not by recursion, because a chain of proxies may be long. */
struct proxy_work {
	struct ready records, tasks;
};

void proxy_work_begin(struct proxy_work *work);
/* Handles the records, then queues the tasks.  A task that cannot be queued for want of
 * memory is run here, so tasks come last. */
void proxy_work_finish(struct worker *w, struct proxy_work *work);
/* The record is complete; proxy_work_finish() handles what that makes ready. */
void proxy_leave(struct worker *w, struct ktrt_task *record);
/* The task, or one of its proxies, no longer uses @all.  The last one frees it. */
void proxies_drop(struct proxies *all);

static inline bool deps_overlap(const struct ktrt_dep *a,
				const struct ktrt_dep *b)
{
	uintptr_t a_start, a_end, b_start, b_end;

	dep_bounds(a, &a_start, &a_end);
	dep_bounds(b, &b_start, &b_end);
	return a_start < b_end && b_start < a_end;
}

/* Enter @record into the chains of @task's children; 0 or -ENOMEM.  If *@ready is not set,
 * another thread may have completed and freed the record before this returns. */
int proxy_enter_inside(struct worker *w, struct ktrt_task *task,
		       struct ktrt_task *record, const struct ktrt_dep *dep,
		       bool *ready);

#endif /* RUNTIME_PROXIES_H */
