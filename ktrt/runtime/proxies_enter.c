/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Enters tasks into chains that have dependences which are weak or released early: a proxy
 * enters in place of the task.
 *
 * Behaves badly with very many such dependences of one task: each is compared with all
 * others.
 *
 * Locking: proxies.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "proxies.h"

/* ---- making them ---- */

/* How one dependence is entered. */
struct plan {
	struct ktrt_dep dep; /* as it is entered */
	struct ktrt_task *member;
	bool weak, was_weak, kept; /* as the proxy's */
	uint32_t chains, waits;
};

static bool is_proxied(const struct ktrt_dep *dep, bool early)
{
	return dep->mode & KTRT_WEAK || (early && dep->mode <= KTRT_INOUT);
}

/* Commutative tasks have no proxies: one that has its turn at one datum would keep others
 * waiting while it waits for another.  Neither have final tasks, whose descendants run in
 * the middle of them. */
static bool can_be_weak(const struct ktrt_task *task,
			const struct ktrt_dep *deps, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (deps[i].mode == KTRT_COMMUTATIVE)
			return false;
	return !(task->flags & (TASK_FINAL | TASK_UNDEFERRED));
}

static void record_init(struct ktrt_task *record, struct proxy *proxy,
			struct ktrt_task *parent)
{
	task_renew(record, parent, NULL, proxy);
	record->flags = TASK_PROXY | TASK_UNDEFERRED | TASK_ALWAYS;
	record->access = record->access_inline;
}

static void proxy_init(struct proxy *proxy, struct proxies *all,
		       const struct plan *plan)
{
	record_init(&proxy->outer, proxy, all->task->parent);
	record_init(&proxy->gate, proxy, all->task);
	record_init(&proxy->end, proxy, all->task);
	proxy->all = all;
	proxy->dep = plan->dep;
	proxy->weak = plan->weak;
	proxy->was_weak = plan->was_weak;
	proxy->kept = plan->kept;
	proxy->ended = proxy->unended = proxy->held = false;
	proxy->left = 2;
	proxy->late = 0;
	all->closed += proxy->weak;
}

/*
 * How the other dependences of the task change the @at-th.  If they overlap, one member of a
 * chain may stand for several of them, so it must not be released before all of them.
 */
static void plan_proxy(struct plan *plan, const struct ktrt_dep *deps,
		       size_t nr, size_t at, bool early)
{
	plan->weak = plan->was_weak = deps[at].mode & KTRT_WEAK;
	for (size_t i = 0; i < nr; i++) {
		if (i == at || !deps_overlap(&deps[at], &deps[i]))
			continue;
		plan->weak = false;
		if (!(deps[i].mode & KTRT_WEAK))
			plan->was_weak = false;
		if (!is_proxied(&deps[i], early))
			plan->kept = true;
	}
}

/* Which dependences get a proxy.  Return: how many.  An undeferred task gets none, because it
 * would gain nothing.  If data is named twice, the task itself may use it. */
static size_t plan_deps(const struct ktrt_task *task,
			const struct ktrt_dep *deps, size_t nr, bool early,
			struct plan *plans)
{
	bool weak = can_be_weak(task, deps, nr);
	size_t proxies = 0;

	for (size_t i = 0; i < nr; i++) {
		struct plan *plan = &plans[i];

		plan->dep = deps[i];
		if (!is_proxied(&deps[i], early))
			continue;
		proxies++;
		plan->dep.mode &= ~(unsigned)KTRT_WEAK;
		plan_proxy(plan, deps, nr, i, early);
		plan->weak &= weak;
	}
	return task->flags & TASK_UNDEFERRED ? 0 : proxies;
}

/* Memory for @nr proxies, and as many spans as there are dependences. */
static struct proxies *proxies_alloc(size_t nr, size_t nr_deps)
{
	size_t bytes = sizeof(struct proxies) + nr * sizeof(struct proxy);
	size_t spans = nr_deps * sizeof(struct span);
	struct proxies *all =
		aligned_alloc(CACHE_LINE, (bytes + spans + CACHE_LINE - 1) &
						  ~(size_t)(CACHE_LINE - 1));

	if (all)
		all->writes = (struct span *)((char *)all + bytes);
	return all;
}

static void note_writes(struct proxies *all, const struct ktrt_dep *deps,
			size_t nr)
{
	all->nr_writes = 0;
	for (size_t i = 0; i < nr; i++) {
		struct span *span = &all->writes[all->nr_writes];

		if (!(deps[i].mode & KTRT_OUT))
			continue;
		dep_bounds(&deps[i], &span->start, &span->end);
		all->nr_writes++;
	}
}

static struct proxies *proxies_new(struct ktrt_task *task,
				   const struct ktrt_dep *deps, bool early,
				   struct plan *plans, size_t nr_plans,
				   size_t nr)
{
	struct proxies *all = proxies_alloc(nr, nr_plans);

	if (!all)
		return NULL;
	note_writes(all, deps, nr_plans);
	all->task = task;
	all->holds = (uint32_t)nr + 1;
	all->closed = 0;
	all->nr = 0;
	for (size_t i = 0; i < nr_plans; i++) {
		struct proxy *proxy = &all->each[all->nr];

		if (!is_proxied(&deps[i], early))
			continue;
		proxy_init(proxy, all, &plans[i]);
		plans[i].member = &proxy->outer;
		all->nr++;
	}
	return all;
}

/*
 * No two gates of a task have data in common, so each is the first member of its chains.
 * Their serial numbers are chosen so that no wait of the task counts spoilt data that they
 * found as good.
 */
static int enter_gates(struct worker *w, struct proxies *all)
{
	struct ktrt_task *task = all->task;
	struct domain *domain = deps_domain(task);
	int error = 0;
	bool first;

	if (!domain)
		return -ENOMEM;
	domain->special = true;
	domain->serial = UINT64_MAX - all->nr - 1;
	for (size_t i = 0; i < all->nr && !error; i++)
		if (all->each[i].weak)
			error = proxy_enter_inside(w, task, &all->each[i].gate,
						   &all->each[i].dep, &first);
	domain->serial = 0;
	return error;
}

/* Free the proxies of a task for which nothing was entered in the parent's chains. */
static void unmake_proxies(struct worker *w, struct ktrt_task *task)
{
	struct proxies *all = task->proxies;
	struct proxy_work work;

	if (!all)
		return;
	task->flags &= (uint16_t)~TASK_PROXIES;
	if (task->domain) {
		proxy_work_begin(&work);
		for (size_t i = 0; i < all->nr; i++)
			proxy_leave(w, &all->each[i].gate);
		proxy_work_finish(w, &work);
		deps_close(w, task);
	}
	all->holds = 1;
	proxies_drop(all);
}

/* ---- entering ---- */

/* Memory for all members. */
static int alloc_members(struct worker *w, struct domain *domain,
			 struct ktrt_task *task, struct plan *plans, size_t nr,
			 struct record **fresh)
{
	size_t own = 0;
	int error = 0;

	for (size_t i = 0; i < nr && !error; i++) {
		struct plan *plan = &plans[i];

		plan->chains = (uint32_t)deps_count(domain, &plan->dep);
		if (plan->member == task)
			own += plan->chains;
		else
			error = deps_alloc(w, plan->member, plan->chains,
					   fresh);
	}
	return error ? error : deps_alloc(w, task, own, fresh);
}

/* Set ->pending of each member to the number of all chains that it may wait for, plus one
 * until all are entered. */
static uint32_t set_pending(struct ktrt_task *task, const struct plan *plans,
			    size_t nr)
{
	uint32_t most = 1;

	for (size_t i = 0; i < nr; i++) {
		const struct plan *plan = &plans[i];

		if (plan->member == task) {
			most += plan->chains;
			continue;
		}
		at_poke(&plan->member->pending, plan->chains + 1);
		most += !plan->weak;
	}
	at_poke(&task->pending, most);
	return most;
}

/* Return: whether what has @most pending has none now; else it may be gone. */
static bool settle_pending(struct ktrt_task *member, uint32_t less)
{
	return at_sub(&member->pending, less) == less;
}

/* The proxies that are ready already, and the task, if it is. */
static bool settle_all(struct worker *w, struct ktrt_task *task,
		       const struct plan *plans, size_t nr)
{
	struct proxy_work work;
	uint32_t less = 1;

	proxy_work_begin(&work);
	for (size_t i = 0; i < nr; i++) {
		const struct plan *plan = &plans[i];
		uint32_t met = plan->chains - plan->waits;

		if (plan->member == task)
			less += met;
		else if (settle_pending(plan->member, met + 1))
			ready_add(&work.records, plan->member);
	}
	proxy_work_finish(w, &work);
	return settle_pending(task, less);
}

static void enter_plans(struct worker *w, struct domain *domain,
			struct plan *plans, size_t nr, struct record **fresh)
{
	domain->serial++;
	for (unsigned rank = 0; rank < NR_RANKS; rank++)
		for (size_t i = 0; i < nr; i++)
			if (mode_rank(plans[i].dep.mode) == rank)
				plans[i].waits =
					deps_enter(w, plans[i].member, domain,
						   &plans[i].dep, fresh);
}

/* What else the task has to know before it begins. */
static void note_modes(struct ktrt_task *task, struct domain *domain,
		       const struct plan *plans, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		domain->weak |= plans[i].weak;
		if (plans[i].dep.mode == KTRT_COMMUTATIVE)
			task->flags |= TASK_TURNS;
		if (plans[i].dep.mode == KTRT_REDUCTION)
			domain->sums = true;
	}
}

static int prepare_all(struct worker *w, struct domain *domain,
		       const struct plan *plans, size_t nr)
{
	struct ktrt_dep *deps = malloc(nr * sizeof(*deps));
	int error;

	if (!deps)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		deps[i] = plans[i].dep;
	error = deps_prepare(w, domain, deps, nr);
	free(deps);
	return error;
}

static int add_plans(struct worker *w, struct ktrt_task *task,
		     struct plan *plans, size_t nr, bool *ready)
{
	struct domain *domain = deps_domain(task->parent);
	struct record *fresh = NULL;

	if (!domain || prepare_all(w, domain, plans, nr))
		return -ENOMEM;
	if (alloc_members(w, domain, task, plans, nr, &fresh)) {
		deps_free_fresh(w, fresh);
		return -ENOMEM;
	}
	note_modes(task, domain, plans, nr);
	set_pending(task, plans, nr);
	enter_plans(w, domain, plans, nr, &fresh);
	deps_free_fresh(w, fresh);
	*ready = settle_all(w, task, plans, nr);
	if (*ready)
		*ready = turns_settle(task);
	return 0;
}

static int make_proxies(struct worker *w, struct ktrt_task *task,
			const struct ktrt_dep *deps, size_t nr, bool early,
			struct plan *plans)
{
	size_t proxies = plan_deps(task, deps, nr, early, plans);

	for (size_t i = 0; i < nr; i++)
		plans[i].member = task;
	if (!proxies)
		return 0;
	task->proxies = proxies_new(task, deps, early, plans, nr, proxies);
	if (!task->proxies)
		return -ENOMEM;
	return enter_gates(w, task->proxies);
}

int proxies_add(struct worker *w, struct ktrt_task *task,
		const struct ktrt_dep *deps, size_t nr, bool early, bool *ready)
{
	struct plan *plans;
	int error;

	rank_assert(w == self_worker && task->parent == w->current);
	error = task_has_proxies(task->parent)
			? proxies_check(task->parent, deps, nr)
			: 0;
	if (error)
		return error;
	plans = calloc(nr, sizeof(*plans));
	if (!plans)
		return -ENOMEM;
	task->proxies = NULL;
	task->access = task->access_inline;
	error = make_proxies(w, task, deps, nr, early, plans);
	/* From now on the thread that completes the task frees what it has. */
	if (!error && task->proxies)
		task->flags |= TASK_PROXIES | TASK_ACCESS_ALLOCATED;
	if (!error)
		error = add_plans(w, task, plans, nr, ready);
	if (error)
		unmake_proxies(w, task);
	free(plans);
	return error;
}
