/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What happens to a proxy when its data is ready, and when it is no longer used.  Owns the
 * memory of proxies: that of one task is one block, which may outlive the task.  Does not
 * own chains (dependences.c, epochs.c).
 *
 * Locking: proxies.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "access_arrays.h"
#include "proxies.h"

/* ---- what becomes ready ---- */

static __thread struct proxy_work *proxy_work
	__attribute__((tls_model("initial-exec")));

static bool is_proxy(const struct ktrt_task *task)
{
	return (task->flags & (TASK_PROXY | TASK_UNDEFERRED)) ==
	       (TASK_PROXY | TASK_UNDEFERRED);
}

static struct ktrt_task *take_first(struct ready *ready)
{
	struct ktrt_task *task = ready->first;

	if (!task)
		return NULL;
	ready->first = task->next;
	if (!ready->first)
		ready->end = &ready->first;
	return task;
}

void proxy_leave(struct worker *w, struct ktrt_task *record)
{
	struct ready ready;
	struct ktrt_task *task;

	ready_init(&ready);
	deps_done(w, record, &ready);
	while ((task = take_first(&ready)))
		ready_add(is_proxy(task) ? &proxy_work->records
					 : &proxy_work->tasks,
			  task);
}

static void free_members(struct ktrt_task *record)
{
	if (record->flags & TASK_ACCESS_ALLOCATED)
		access_array_put(self_worker, record->access);
}

void proxies_drop(struct proxies *all)
{
	if (at_sub(&all->holds, 1) != 1)
		return;
	for (size_t i = 0; i < all->nr; i++) {
		free_members(&all->each[i].outer);
		free_members(&all->each[i].gate);
		free_members(&all->each[i].end);
	}
	free(all);
}

/* Is the data spoilt for what comes next, because a weak dependence that reads it had no
 * @end by which its children could have passed that on? */
static bool spoilt_passes(const struct proxy *proxy)
{
	return proxy->unended && proxy->dep.mode & KTRT_IN &&
	       at_peek(&proxy->outer.flags) & TASK_SPOILT;
}

/* Called ->left times; the last call completes the proxy. */
static void drop_proxy_part(struct worker *w, struct proxy *proxy)
{
	if (at_sub(&proxy->left, 1) != 1)
		return;
	if (unlikely(spoilt_passes(proxy)))
		at_poke(&proxy->outer.error, -ECANCELED);
	proxy_leave(w, &proxy->outer);
	proxies_drop(proxy->all);
}

/* The data is ready: let the task's children (weak), or the task, use it. */
static void open_proxy(struct worker *w, struct proxy *proxy)
{
	bool spoilt = at_peek(&proxy->outer.flags) & TASK_SPOILT;
	struct ktrt_task *task = proxy->all->task;

	if (proxy->weak) {
		if (spoilt)
			at_poke(&proxy->gate.error, -ECANCELED);
		proxy_leave(w, &proxy->gate);
		at_sub(&proxy->all->closed, 1);
	} else {
		if (spoilt)
			task_spoil(task);
		if (at_sub(&task->pending, 1) == 1)
			ready_add(&proxy_work->tasks, task);
	}
	drop_proxy_part(w, proxy);
}

/* No descendant of the task uses the data any more. */
static void end_proxy(struct worker *w, struct proxy *proxy)
{
	bool spoilt = at_peek(&proxy->end.flags) & TASK_SPOILT;

	/* If the task named the data twice, the end of another proxy may come next. */
	if (unlikely(spoilt))
		at_poke(&proxy->end.error, -ECANCELED);
	proxy_leave(w, &proxy->end);
	if (unlikely(spoilt)) {
		at_poke(&proxy->outer.error, -ECANCELED);
		if (at_swap(&proxy->late, LATE_WAITS) != LATE_COMPLETE)
			return;
	}
	drop_proxy_part(w, proxy);
}

static void handle_record(struct worker *w, struct ktrt_task *record)
{
	struct proxy *proxy = record->arg;

	if (record == &proxy->outer)
		open_proxy(w, proxy);
	else
		end_proxy(w, proxy);
}

void proxy_work_begin(struct proxy_work *work)
{
	ready_init(&work->records);
	ready_init(&work->tasks);
	proxy_work = work;
}

void proxy_work_finish(struct worker *w, struct proxy_work *work)
{
	struct ktrt_task *task;

	while ((task = take_first(&work->records)))
		handle_record(w, task);
	proxy_work = NULL;
	while ((task = take_first(&work->tasks)))
		if (turns_settle(task))
			task_ready(w, task);
}

void proxy_ready(struct worker *w, struct ktrt_task *record)
{
	struct proxy_work work;

	proxy_work_begin(&work);
	ready_add(&work.records, record);
	proxy_work_finish(w, &work);
}

/* ---- what children may do ---- */

/* Does the task name all of these bytes to write? */
static bool writes_all(const struct proxies *all, uintptr_t at, uintptr_t end)
{
	uintptr_t before;

	do {
		before = at;
		for (size_t i = 0; i < all->nr_writes; i++)
			if (all->writes[i].start <= at &&
			    at < all->writes[i].end)
				at = all->writes[i].end;
	} while (at < end && at != before);
	return at >= end;
}

/* Does another dependence of the task write bytes that this one only reads? */
static bool writes_overlap(const struct proxy *proxy,
			   const struct ktrt_dep *dep)
{
	uintptr_t start, end, proxy_start, proxy_end;

	dep_bounds(dep, &start, &end);
	dep_bounds(&proxy->dep, &proxy_start, &proxy_end);
	return writes_all(proxy->all, start > proxy_start ? start : proxy_start,
			  end < proxy_end ? end : proxy_end);
}

static bool permits_dep(const struct proxy *proxy, const struct ktrt_dep *dep)
{
	unsigned mode = dep->mode & ~(unsigned)KTRT_WEAK;

	if (!deps_overlap(&proxy->dep, dep))
		return true;
	if (proxy->ended)
		return false;
	return mode == KTRT_IN || proxy->dep.mode & KTRT_OUT ||
	       writes_overlap(proxy, dep);
}

int proxies_check(const struct ktrt_task *parent, const struct ktrt_dep *deps,
		  size_t nr)
{
	const struct proxies *all;

	if (!task_has_proxies(parent))
		return 0;
	all = parent->proxies;
	for (size_t i = 0; i < nr; i++)
		for (size_t j = 0; j < all->nr; j++)
			if (!permits_dep(&all->each[j], &deps[i]))
				return -EINVAL;
	return 0;
}

bool proxies_closed(const struct ktrt_task *task)
{
	return task_has_proxies(task) && at_load(&task->proxies->closed);
}

/* ---- ends ---- */

int proxy_enter_inside(struct worker *w, struct ktrt_task *task,
		       struct ktrt_task *record, const struct ktrt_dep *dep,
		       bool *ready)
{
	const struct ktrt_dep whole = { dep->addr, dep->len, KTRT_INOUT };
	struct domain *domain = task->domain;
	struct record *fresh = NULL;
	uint32_t most, less;

	if (deps_prepare(w, domain, &whole, 1))
		return -ENOMEM;
	most = (uint32_t)deps_count(domain, &whole) + 1;
	if (deps_alloc(w, record, most - 1, &fresh)) {
		deps_free_fresh(w, fresh);
		return -ENOMEM;
	}
	domain->serial++;
	at_poke(&record->pending, most);
	less = most - deps_enter(w, record, domain, &whole, &fresh);
	deps_free_fresh(w, fresh);
	*ready = at_sub(&record->pending, less) == less;
	return 0;
}

/* The task no longer uses the data: enter @end.  -ENOMEM: the data is released only when the
 * task is complete. */
static int add_end(struct worker *w, struct ktrt_task *task,
		   struct proxy *proxy)
{
	bool ready = false;
	int error;

	proxy->ended = true;
	/* Another thread may complete and free @end during this call. */
	error = proxy_enter_inside(w, task, &proxy->end, &proxy->dep, &ready);
	if (error)
		proxy->ended = false;
	else if (ready)
		proxy_ready(w, &proxy->end);
	return error;
}

/* The same for data that is released only when the task is complete, too. */
static void add_held_end(struct worker *w, struct ktrt_task *task,
			 struct proxy *proxy)
{
	proxy->held = true;
	at_add(&proxy->left, 1);
	if (!add_end(w, task, proxy))
		return;
	proxy->held = false;
	at_sub(&proxy->left, 1);
}

/* If the task has failed, its data is released only after the failure is reported.  The task
 * may still use data that it does not name weakly while it has outstanding events. */
void proxies_end(struct worker *w, struct ktrt_task *task)
{
	bool has_events = at_load(&task->live) >= LIVE_EVENT;
	struct proxies *all = task->proxies;

	if (at_peek(&task->error))
		return;
	for (size_t i = 0; i < all->nr; i++) {
		struct proxy *proxy = &all->each[i];

		if (proxy->ended || proxy->kept)
			continue;
		if (has_events && !proxy->was_weak)
			add_held_end(w, task, proxy);
		else
			add_end(w, task, proxy);
	}
}

void proxies_complete(struct worker *w, struct ktrt_task *task)
{
	struct proxies *all = task->proxies;
	struct proxy_work work;

	proxy_work_begin(&work);
	for (size_t i = 0; i < all->nr; i++) {
		struct proxy *proxy = &all->each[i];

		if (!proxy->ended && at_peek(&task->error))
			at_poke(&proxy->outer.error, -ECANCELED);
		if (proxy->weak && !proxy->ended)
			proxy->unended = true;
		if (!proxy->ended ||
		    at_swap(&proxy->late, LATE_COMPLETE) == LATE_WAITS)
			drop_proxy_part(w, proxy);
		if (unlikely(proxy->held))
			drop_proxy_part(w, proxy);
	}
	proxy_work_finish(w, &work);
	proxies_drop(all);
}

static bool is_proxy_for(const struct proxy *proxy, const struct ktrt_dep *dep)
{
	return proxy->dep.addr == dep->addr && proxy->dep.len == dep->len;
}

static size_t count_proxies(const struct ktrt_task *task,
			    const struct ktrt_dep *dep)
{
	const struct proxies *all =
		task_has_proxies(task) ? task->proxies : NULL;
	size_t nr = 0;

	for (size_t i = 0; all && i < all->nr; i++)
		nr += is_proxy_for(&all->each[i], dep);
	return nr;
}

/* 0 or -ENOMEM. */
static int end_proxies(struct worker *w, struct ktrt_task *task,
		       const struct ktrt_dep *dep)
{
	struct proxies *all = task->proxies;
	int error = 0;

	for (size_t i = 0; i < all->nr && !error; i++) {
		struct proxy *proxy = &all->each[i];

		if (is_proxy_for(proxy, dep) && !proxy->ended)
			error = add_end(w, task, proxy);
	}
	return error;
}

int ktrt_release(const struct ktrt_dep *deps, size_t nr_deps)
{
	struct worker *w = current_worker();
	struct ktrt_task *task = ktrt_self();
	int error = 0;

	if (!task)
		return -ESRCH;
	if (nr_deps && !deps)
		return -EINVAL;
	if (task->flags & TASK_UNDEFERRED)
		return 0;
	for (size_t i = 0; i < nr_deps; i++)
		if (!count_proxies(task, &deps[i]))
			return -EINVAL;
	for (size_t i = 0; i < nr_deps && !error; i++)
		error = end_proxies(w, task, &deps[i]);
	return error;
}
