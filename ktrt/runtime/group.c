/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Groups of tasks, external events, and running one task to its end.
 *
 * Groups may outlive their runtime: all of their tasks are complete then, but codes that
 * nobody has waited for are still there, and a wait returns them with and without a runtime.  In the child of a fork that was not in
 * between, tasks of a group may be lost.
 *
 * Locking: rt.h.
 */
#include <errno.h>
#include <string.h>

#include "dependences.h"
#include "func_kinds.h"

#define EVENTS_MAX 65536
#define EVENTS_IN_ALL (UINT64_MAX / LIVE_EVENT)
#define SPINS 2000
/* While it spins, a waiter searches for tasks once in SPINS_BETWEEN rounds. */
#define SPINS_BETWEEN 64
#define WAIT_MISSES 2

/* ---- groups ---- */

/* Shared by all runtimes of the process, one after another. */
static struct pool group_records = POOL_INIT(sizeof(struct ktrt_group));

size_t groups_bytes(void)
{
	return pool_bytes(&group_records);
}

void groups_after_fork(void)
{
	pool_init(&group_records, sizeof(struct ktrt_group));
}

int ktrt_group_new(struct ktrt_group **group)
{
	if (!group)
		return -EINVAL;
	*group = NULL;
	if (!current_worker())
		return -ESRCH;
	*group = pool_get(&group_records, NULL);
	if (!*group)
		return -ENOMEM;
	at_poke(&(*group)->live, 0);
	at_poke(&(*group)->wake, (uint32_t)SIGNAL_NONE);
	at_poke(&(*group)->error, 0);
	at_poke(&(*group)->cancelled, 0);
	(*group)->starts = rt.starts;
	return 0;
}

static bool is_complete(const struct ktrt_group *group)
{
	return !(uint32_t)at_load(&group->live);
}

/*
 * Spin until the group is complete or one of its tasks can be taken.
 *
 * Return: the task; NULL: the group is complete, or another worker should have the CPU.
 */
static struct ktrt_task *spin_for(struct worker *w,
				  const struct ktrt_group *group, bool helps)
{
	unsigned misses = 0;

	for (unsigned i = 0; i < SPINS && !is_complete(group); i++) {
		struct ktrt_task *task;

		cpu_relax();
		if ((i + 1) % SPINS_BETWEEN || !helps || !w->core ||
		    !sched_work_visible())
			continue;
		task = search_group(w, group);
		if (task || ++misses == WAIT_MISSES)
			return task;
	}
	return NULL;
}

static void group_sleep(struct worker *w, struct ktrt_group *group)
{
	at_poke(&group->wake, (uint32_t)SIGNAL_NONE);
	if ((uint32_t)at_add(&group->live, LIVE_WAITED))
		park_until(w, &group->wake, 0);
	at_sub(&group->live, LIVE_WAITED);
}

/*
 * @helps: run tasks of the group and their descendants meanwhile.  Other children may wait
 * for what the caller does later, so it runs none of them unless no thread is left.
 */
static int wait_for_group(struct worker *w, struct ktrt_group *group,
			  bool helps)
{
	visit_forget(w);
	search_begin(w);
	while (!is_complete(group)) {
		const struct wait_filter filter = filter_for(w->current, group);
		struct ktrt_task *task;

		if (visit_has_left(w)) {
			group_sleep(w, group);
			continue;
		}
		task = helps && w->core ? search_group(w, group) : NULL;
		if (!task && !wake_below(w))
			task = spin_for(w, group, helps);
		if (is_complete(group) && !task)
			break;
		if (!task && worker_is_inside(w))
			task = search_wanted(w, &filter);
		task = visit_accept(w, task);
		if (task)
			task_help(w, task, NULL);
		else
			group_sleep(w, group);
	}
	return error_take(&group->error);
}

/* The caller is an attached thread. */
static void help_group(struct worker *w, struct ktrt_group *group)
{
	while (!w->core && !w->lent && !is_complete(group) &&
	       visit_help(w, w->current, group))
		;
}

/* The only wait in this file that reports failures to the maker of tasks. */
int ktrt_group_wait(struct ktrt_group *group)
{
	struct worker *w = current_worker();
	int error;

	if (!group)
		return -EINVAL;
	/* All tasks ended before their runtime did, unless they were lost by a fork. */
	if (!rt_runs() && is_complete(group))
		return error_take(&group->error);
	if (!w || (!group_is_current(group) && !is_complete(group)))
		return -ESRCH;
	help_group(w, group);
	error = wait_for_group(w, group, true);
	if (unlikely(error) && w->current->domain)
		deps_forgive(w->current);
	return error;
}

void ktrt_group_cancel(struct ktrt_group *group)
{
	if (!group)
		return;
	at_store(&group->cancelled, 1);
	at_add(&rt.cancels, 1);
}

void ktrt_group_free(struct ktrt_group *group)
{
	struct worker *w = current_worker();

	if (!group)
		return;
	if (w && group_is_current(group))
		ktrt_code_drop(wait_for_group(w, group, true));
	else if (is_complete(group))
		ktrt_code_drop(error_take(&group->error));
	else
		return;
	pool_put(&group_records, NULL, group);
}

int ktrt_cancelled(void)
{
	struct worker *w = current_worker();

	if (!w)
		return 0;
	return w->current->flags & TASK_SPOILT ||
	       (at_peek(&rt.cancels) && task_is_cancelled(w->current));
}

int ktrt_in_final(void)
{
	struct worker *w = current_worker();

	return w && w->current->flags & TASK_FINAL;
}

/* ---- external events ---- */

struct ktrt_task *ktrt_self(void)
{
	struct worker *w = current_worker();

	return w && !(w->current->flags & TASK_OUTER) ? w->current : NULL;
}

/* A small loop is done in the middle of its caller, who looks for the group afterwards. */
static int join_own_group(struct ktrt_task *task)
{
	struct ktrt_group *group;
	int error = ktrt_group_new(&group);

	if (error)
		return error;
	at_add(&group->live, 1);
	at_poke(&task->group, group);
	return 0;
}

int ktrt_events_add(unsigned nr)
{
	struct ktrt_task *task = ktrt_self();
	uint64_t live;
	int error;

	if (!task)
		return -ESRCH;
	if (nr > EVENTS_MAX)
		return -EINVAL;
	if (unlikely(loop_is_here(task)) && !task->group) {
		error = join_own_group(task);
		if (error)
			return error;
	}
	/* While the body runs, children do not borrow from the count of events. */
	live = at_load(&task->live);
	do {
		if (live / LIVE_EVENT + nr > EVENTS_IN_ALL)
			return -EOVERFLOW;
	} while (!at_cas(&task->live, &live, live + nr * LIVE_EVENT));
	at_add(&rt.events, nr);
	return 0;
}

static void end_events(struct worker *w, struct ktrt_task *task, unsigned nr)
{
	uint64_t events = nr * LIVE_EVENT;

	at_sub(&rt.events, nr);
	if (at_sub(&task->live, events) != events)
		return;
	task = task_complete(w, task);
	if (task)
		task_ready(w, task);
}

/*
 * The thread that waited for the last event may stop the runtime while this thread is
 * still giving the signal.  ktrt_stop() joins workers, and waits until no other thread is
 * counted in rt.ending.
 */
void ktrt_events_done(struct ktrt_task *task, unsigned nr)
{
	struct worker *w = current_worker();

	if (!task || !rt_runs())
		return;
	if (!w)
		at_add(&rt.ending, 1);
	end_events(w, task, nr);
	if (!w)
		at_sub(&rt.ending, 1);
}

/* ---- waiting for data ---- */

static int tell_whether_spoilt(void *arg)
{
	return self_worker->current->flags & TASK_SPOILT ? -ECANCELED : 0;
}

/*
 * Make a task that uses the data and only checks whether they are spoilt, and wait for
 * it.  Other children may wait for what the caller does later, so the caller runs none of
 * them meanwhile.
 */
int ktrt_wait_for(const struct ktrt_dep *deps, size_t nr_deps)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct worker *w = current_worker();
	uint64_t spawned;
	int error;

	/* A task that adds to a reduction, or names data weakly, does not wait for the data. */
	for (size_t i = 0; deps && i < nr_deps; i++)
		if (deps[i].mode > KTRT_COMMUTATIVE)
			return -EINVAL;
	error = ktrt_group_new(&attr.group);
	if (error)
		return error;
	attr.deps = deps;
	attr.nr_deps = nr_deps;
	attr.flags = KTRT_ALWAYS;
	spawned = w->current->spawned;
	error = spawn_beside_limit(w, tell_whether_spoilt, NULL, &attr);
	if (!error)
		error = wait_for_group(w, attr.group, false);
	child_limit_forget(w->current, spawned);
	ktrt_group_free(attr.group);
	return error;
}

/* ---- one task ---- */

/* Here, and then what it made. */
static int spawn_and_visit(struct worker *w, ktrt_func func, void *arg,
			   struct ktrt_attr *attr)
{
	struct visit visit __attribute__((cleanup(visit_left))) = { NULL, 0 };
	int error;

	if (w->core || visit_begin(&visit, w))
		attr->flags |= KTRT_UNDEFERRED;
	error = ktrt_spawn_attr(func, arg, attr);
	if (visit.w && !error)
		visit_continue(&visit, w->current, attr->group);
	/* A worker that takes over the core has precedence. */
	if (!visit_end(&visit) && !error)
		help_group(w, attr->group);
	return error;
}

static int run_in_group(ktrt_func func, void *arg, bool takes_part)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct worker *w = current_worker();
	int error = ktrt_group_new(&attr.group);

	if (error)
		return error;
	w->lone = !w->core;
	error = takes_part ? spawn_and_visit(w, func, arg, &attr)
			   : ktrt_spawn_attr(func, arg, &attr);
	if (!error)
		error = wait_for_group(w, attr.group, true);
	worker_forget_lone(w);
	ktrt_group_free(attr.group);
	return error;
}

/* To find out whether a thread that is attached for this alone has enough stack would cost
 * too much. */
int group_run(ktrt_func func, void *arg, bool takes_part)
{
	bool attached = !!current_worker();
	int error;

	if (!rt_runs())
		return -ESRCH;
	error = attached ? 0 : attach_when_possible();
	if (error)
		return error;
	error = run_in_group(func, arg, takes_part && attached);
	if (!attached)
		ktrt_code_drop(ktrt_detach());
	return error;
}

int ktrt_run(ktrt_func func, void *arg)
{
	return func ? group_run(func, arg, false) : -EINVAL;
}
