/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The limit on children.  A task may make children faster than they are done.  Then
 * it runs children itself if their functions are known to be brief.  At max_children
 * it waits until half of them are done.
 *
 * The maker must not wait for ever: a child may wait for what its maker does later,
 * such as another task or a write into a pipe.  So the maker runs a child that may be
 * long only if nobody else can run it.  If all of its children seem to wait, the maker
 * continues.
 *
 * On a single core a maker that goes on keeps others from running its children, so that
 * nobody finds out whether they are brief.  So a maker of TRIAL children stands still until
 * all are complete, once its worker has done so many tasks that this pays.  None of those
 * children waits for what the maker does later.  From then on it does tasks of that function
 * at once if they are brief.
 *
 * Locking: rt.h.
 */
#include "func_kinds.h"
#include "rt.h"

/* As many children as caches hold.  While workers idle or search, more may be made. */
#define CHILDREN_CACHED 2048

static inline bool exceeds_limit(int64_t nr, int64_t most)
{
	if (nr <= CHILDREN_CACHED)
		return nr > most;
	return nr > most || !at_load_seq(&rt.idlers);
}

/* A maker that sleeps checks this often whether it may continue. */
#define RECHECK_NS 20000000

/* As wait_for_signal(), until no more than @left children are left.  @left is
 * subtracted from the count for as long, so that the count is 0 by then. */
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

/* Can no other worker run the task, because there is none or none comes? */
static bool must_run_itself(struct worker *w)
{
	return !w->outer && (threads_at_limit() || search_is_due(w));
}

/* Other workers run this many children, to find out whether a function is brief.  If
 * it is still unknown then, it skips TRIAL_PAUSE checks. */
#define TRIAL 64
#define TRIAL_PAUSE 32

/* The next @most checks do nothing, but those above the limit do. */
static void skip_checks(struct worker *w, const struct ktrt_task *parent,
			unsigned most)
{
	int64_t below =
		(int64_t)rt.options.max_children - task_outstanding(parent);
	int64_t checks = below > 0 ? below / CHILDREN_PER_CHECK : 0;

	w->grants = checks < most ? (unsigned)checks : most;
}

/* May the maker run it itself? */
static bool may_run_itself(struct worker *w, const struct ktrt_task *task)
{
	if (w->outer)
		return w->core && visitor_may_run(task);
	return func_is_brief(task_func(task)) || must_run_itself(w);
}

static struct ktrt_task *run_by_maker(struct worker *w, struct ktrt_task *task)
{
	return func_is_brief(task_func(task)) ? task_run(w, task)
					      : task_run_timed(w, task);
}

/* There are more children than caches hold: run brief ones. */
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
	} while (exceeds_limit(task_outstanding(parent) * 2ll,
			       rt.options.max_children));
	if (!task)
		return;
	kind = func_kind(task_func(task));
	task_ready(w, task);
	if (kind != FUNC_UNKNOWN)
		return;
	sleep_until_left(w, parent, (uint32_t)nr - TRIAL);
	skip_checks(w, parent, TRIAL_PAUSE);
}

/*
 * Wait until other workers have reduced the children to half of the limit.
 *
 * Return: false if no child is ready and none has ended.  They may all wait for what
 * the maker does later, so it must continue.
 */
static bool wait_for_children(struct worker *w, struct ktrt_task *parent)
{
	uint32_t left = rt.options.max_children / 2;
	int32_t nr;

	/* It waits for many, and for none of them if nothing moves. */
	visit_forget(w);
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
		    (!task || (w->outer && search_is_due(w))))
			return false;
	}
	return true;
}

/* On a single core: has the newest child a function that may be brief, and that no maker has
 * stood still for?  @func: which. */
static bool wants_trial(struct worker *w, const struct ktrt_task *parent,
			ktrt_func *func)
{
	struct ktrt_task *task = pop_own(w);
	bool is_child;

	if (!task)
		return false;
	is_child = task->parent == parent;
	*func = task_func(task);
	task_ready(w, task);
	return is_child && func_kind(*func) != FUNC_LONG &&
	       !func_is_tried(*func);
}

/* Have another worker do all children, unless they wait for something; the one that is being
 * made counts, but nobody can do it yet. */
static void try_children(struct worker *w, struct ktrt_task *parent)
{
	ktrt_func func;

	if (w->grants) {
		w->grants--;
		return;
	}
	if (at_peek(&w->counts.tasks) < rt.trial_after || threads_at_limit() ||
	    !wants_trial(w, parent, &func))
		return;
	sleep_until_left(w, parent, 1);
	if (task_outstanding(parent) > 1)
		skip_checks(w, parent, TRIAL_PAUSE);
	else if (func_kind(func) != FUNC_UNKNOWN)
		func_note_tried(func);
}

/* After an attached thread has found no task that it may run, it skips so many checks. */
#define VISIT_PAUSE 4

static void __attribute__((noinline))
reduce_children(struct worker *w, struct ktrt_task *parent)
{
	struct visit visit __attribute__((cleanup(visit_left))) = { NULL, 0 };

	uint64_t before = at_peek(&w->counts.tasks);
	bool was_outside = !w->core;

	/* An attached thread does tasks only on a core. */
	if (was_outside && visit_begin(&visit, w))
		visit_be_seen(w);
	if (task_outstanding(parent) > (int32_t)rt.options.max_children) {
		if (!wait_for_children(w, parent))
			w->grants = rt.options.max_children / 16 /
				    CHILDREN_PER_CHECK;
	} else if (w->core) {
		do_brief_tasks(w, parent);
		if (visit.w && at_peek(&w->counts.tasks) == before)
			skip_checks(w, parent, VISIT_PAUSE);
	}
	/* A thread that came here from a task helps already. */
	if (was_outside)
		at_poke(&w->helps,
			visit.w && at_peek(&w->counts.tasks) != before);
	visit_end(&visit);
}

void child_limit_apply(struct worker *w, struct ktrt_task *parent)
{
	int32_t nr = task_outstanding(parent);

	count_up(&w->made);
	if (unlikely(exceeds_limit(nr, rt.options.max_children))) {
		if (w->grants)
			w->grants--;
		else
			reduce_children(w, parent);
	} else if (unlikely(rt.nr_cores == 1) && nr >= TRIAL && !w->outer) {
		try_children(w, parent);
	}
}

int spawn_beside_limit(struct worker *w, ktrt_func func, void *arg,
		       const struct ktrt_attr *attr)
{
	unsigned grants = w->grants;
	int error;

	w->grants = 1;
	error = ktrt_spawn_attr(func, arg, attr);
	w->grants = grants;
	return error;
}

/* If it was done on this stack it is uncounted already (parent_less()). */
void child_limit_forget(struct ktrt_task *maker, uint64_t spawned_before)
{
	if (maker->spawned <= spawned_before)
		return;
	maker->spawned += CHILDREN_PER_CHECK - 1;
	maker->credited += CHILDREN_PER_CHECK - 1;
}
