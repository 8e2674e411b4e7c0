/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a task does that makes children faster than they are done.  It does those
 * itself of which it is known that they are brief.  With max_children it waits
 * until others have done half of them.
 *
 * A maker must not stand for ever, and a task may wait for what its maker is
 * still to make, or to write into a pipe.  So it does others itself only where
 * nobody else can, and where all of its children seem to wait it goes on.
 */
#include "func_kinds.h"
#include "rt.h"

/* As many children as caches hold; those who idle, or look, want more. */
#define CHILDREN_CACHED 2048

static inline bool exceeds_limit(const struct worker *w, int64_t nr,
				 int64_t most)
{
	if (nr <= CHILDREN_CACHED)
		return nr > most;
	return nr > most || (w->core && !at_load_seq(&rt.idlers));
}

/* A maker looks so often whether it may go on. */
#define RECHECK_NS 20000000

/* As wait_for_signal(), until no more than @room are left: as many are taken
 * from the number, so that it comes to 0 then. */
static void sleep_until_left(struct worker *w, struct ktrt_task *parent,
			     uint32_t left)
{
	uint64_t more = parent->spawned - parent->credited;

	at_poke(&parent->wake, (uint32_t)SIGNAL_NONE);
	parent->credited = parent->spawned;
	more += LIVE_WAITED - left;
	if ((int32_t)(uint32_t)(at_add(&parent->live, more) + more) > 0)
		park_until(w, &parent->wake, RECHECK_NS);
	at_add(&parent->live, left - LIVE_WAITED);
}

/* Others cannot do it: there are none, or none comes. */
static bool must_run_itself(struct worker *w)
{
	return w->core && (threads_at_limit() || search_is_due(w));
}

/* So many others shall do, so that it is known whether they are brief; and if
 * that was not to be had, so many looks follow without a trial. */
#define TRIAL 64
#define TRIAL_PAUSE 32

/* May the maker do it itself? */
static bool may_run_itself(struct worker *w, const struct ktrt_task *task)
{
	return w->core &&
	       (func_is_brief(task_func(task)) || must_run_itself(w));
}

static struct ktrt_task *run_by_maker(struct worker *w, struct ktrt_task *task)
{
	return func_is_brief(task_func(task)) ? sched_run(w, task)
					      : sched_run_timed(w, task);
}

/* There are more than caches hold: do brief ones. */
static void do_brief_tasks(struct worker *w, struct ktrt_task *parent)
{
	struct ktrt_task *task = NULL;
	int32_t nr = task_outstanding(parent);
	unsigned kind;

	do {
		if (!task)
			task = sched_take_below(w, parent);
		if (!task || !may_run_itself(w, task))
			break;
		task = run_by_maker(w, task);
	} while (exceeds_limit(w, task_outstanding(parent) * 2ll,
			       rt.options.max_children));
	if (!task)
		return;
	kind = func_kind(task_func(task));
	task_ready(w, task);
	if (kind != FUNC_UNKNOWN)
		return;
	sleep_until_left(w, parent, (uint32_t)nr - TRIAL);
	w->grants = TRIAL_PAUSE;
}

/*
 * Wait until half as many children are left as there may be; others do them.
 * If none is ready and none ends they may all wait for what the maker is still
 * to do: then some more are made.  false: so it is.
 */
static bool wait_for_children(struct worker *w, struct ktrt_task *parent)
{
	uint32_t left = rt.options.max_children / 2;
	int32_t nr;

	while ((nr = task_outstanding(parent)) > (int32_t)left) {
		struct ktrt_task *task = sched_take_below(w, parent);

		if (task && may_run_itself(w, task)) {
			task = run_by_maker(w, task);
			if (task)
				task_ready(w, task);
			continue;
		}
		if (task)
			task_ready(w, task);
		sleep_until_left(w, parent, left);
		if (task_outstanding(parent) == nr &&
		    (!task || (!w->core && search_is_due(w))))
			return false;
	}
	return true;
}

void child_limit_apply(struct worker *w, struct ktrt_task *parent)
{
	int32_t nr = task_outstanding(parent);

	count_up(&w->made);
	if (likely(!exceeds_limit(w, nr, rt.options.max_children)))
		return;
	if (w->grants)
		w->grants--;
	else if (nr <= (int32_t)rt.options.max_children)
		do_brief_tasks(w, parent);
	else if (!wait_for_children(w, parent))
		w->grants = rt.options.max_children / 16 / CHILDREN_PER_CHECK;
}
