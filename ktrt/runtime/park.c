/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Workers on cores: which of them sleep, continue, or hand their core over.
 *
 * Owns the state of each core.  A core counts its active workers: all that the runtime
 * has not put to sleep.  A worker that blocks in the kernel stays active; only UMT knows
 * that it is blocked.
 *
 * No wake-up may be lost between "this core is idle" and "there are tasks".  So a worker
 * that goes to sleep first marks its core idle and then checks for tasks.  A worker that
 * queues a task does that first and then checks for idle cores.  All four accesses are
 * sequentially consistent.
 *
 * Does not own the lists of sleeping workers (core_lists.h).
 *
 * Locking: L, P, W and A are those of rt.h.
 */
#include <errno.h>

#include <ktask/ktask.h>

#include "core_lists.h"
#include "trace.h"

/* ---- marks, under the core's lock ---- */

/* Read without the lock as well.  Jobs get no helpers for busy cores. */
static void add_active(struct core *core, int change)
{
	bool was = core->active > 0;

	core_assert_locked(core);
	at_poke(&core->active, core->active + change);
	if (was != (core->active > 0))
		ktask_others_work(was ? -1 : 1);
}

static void unmark_stuck(struct core *core, struct worker *w)
{
	core_assert_locked(core);
	if (likely(!w->stuck))
		return;
	at_poke(&w->stuck, 0);
	at_poke(&core->nr_stuck, core->nr_stuck - 1);
}

/* The worker is to sleep, or ends. */
static void leave_core(struct core *core, struct worker *w)
{
	unmark_stuck(core, w);
	add_active(core, -1);
}

void park_forget(void)
{
	/* No lock is needed, because no other thread is left. */
	for (unsigned i = 0; i < rt.nr_cores; i++) {
		if (rt.cores[i].active > 0)
			ktask_others_work(-1);
		rt.cores[i].active = 0;
	}
}

/* The leader wants to be told of blocked cores while no other core is idle. */
static void want_events(bool on)
{
	if (rt_counts())
		umt_want(rt.umt, on);
}

static void mark_idle(struct core *core)
{
	uint8_t *flag = mask_flag(rt.idle, core->index);

	core_assert_locked(core);
	if (at_peek(flag))
		return;
	at_store_seq(flag, 1);
	if (!(uint32_t)at_add(&rt.idlers, IDLERS_CORE))
		want_events(false);
}

static WAKE_PATH void unmark_idle(struct core *core)
{
	uint8_t *flag = mask_flag(rt.idle, core->index);

	core_assert_locked(core);
	if (!at_peek(flag))
		return;
	at_store_seq(flag, 0);
	if ((uint32_t)at_sub(&rt.idlers, IDLERS_CORE) == 1)
		want_events(true);
}

void park_goes_on(struct worker *w)
{
	worker_assert_own(w);
	core_lock(w->core);
	unmark_stuck(w->core, w);
	unmark_idle(w->core);
	core_unlock(w->core);
}

/* Has the runtime not put the worker to sleep?  One that is about to sleep may seem active:
 * then it counts as stuck until it continues. */
static bool is_active(struct worker *w)
{
	return signal_given(&w->wake) && !at_load(&w->awaited);
}

void park_stuck(struct core *core)
{
	leader_assert();
	core_lock(core);
	for (unsigned i = 0; i < rt.nr_slots; i++) {
		struct worker *w = at_load(&rt.workers[i]);

		/* Read in this order: a worker that has its signal has its core as well. */
		if (!w || !is_active(w) || at_peek(&w->core) != core ||
		    w->stuck)
			continue;
		at_poke(&w->stuck, 1);
		at_poke(&core->nr_stuck, core->nr_stuck + 1);
	}
	core_unlock(core);
}

/* Does no other worker run on the core, except blocked ones?  @own: how many of the ready
 * ones are about to sleep. */
static bool is_deserted(const struct core *core, int own)
{
	core_assert_locked(core);
	return !core->active || core_ready(core) <= (rt_counts() ? own : 0);
}

/* ---- lists ---- */

/*
 * Take the calling worker off the list of sleeping workers, if nobody has woken it yet.
 * @core: the core that it left; whoever wakes it may give it another.
 */
static bool unlist_worker(struct core *core, struct worker *w)
{
	bool was;

	core_lock(core);
	was = core_unlist(core, w);
	if (was) {
		add_active(core, 1);
		unmark_idle(core);
	}
	core_unlock(core);
	return was;
}

/* ---- handing a core over ---- */

/* The worker that was woken for the core does not run yet. */
static void expect_worker(struct core *core)
{
	unmark_idle(core);
	add_active(core, 1);
	at_store(&core->arriving, 1);
}

static void give_core(struct core *core, struct worker *to)
{
	expect_worker(core);
	at_poke(&to->core, core);
}

/* Call it without a lock, because it makes system calls. */
static void bind_and_wake(struct worker *to)
{
	rt_assert_below(RANK_CORE);
	worker_bind(to);
	signal_give(&to->wake);
}

/* Sleep until another thread gives the worker a core. */
static WAKE_PATH void await_core(struct worker *w)
{
	signal_await(&w->wake);
	if (unlikely(w->leads))
		leader_lead(w);
	if (unlikely(at_peek(&rt.watching) != at_peek(&w->umt)))
		worker_monitor(w, true);
	if (w->core)
		at_store(&w->core->arriving, 0);
}

/* The same for a worker on a list of idle ones: park_wake_all() may have run before. */
static void await_idle(struct core *core, struct worker *w)
{
	if (at_load_seq(&rt.stop) && unlist_worker(core, w))
		count_search();
	else
		await_core(w);
}

WAKE_PATH void park_idle(struct worker *w)
{
	struct core *core = w->core;
	struct worker *next;

	core_lock(core);
	leave_core(core, w);
	next = core_take_suspended(core);
	core_list_idle(core, w);
	if (next)
		give_core(core, next);
	else if (is_deserted(core, 1))
		mark_idle(core);
	core_unlock(core);
	if (next) {
		count_search();
		bind_and_wake(next);
	} else if (sched_work_visible() && unlist_worker(core, w)) {
		count_search();
		return;
	}
	count_up(&w->counts.parks);
	await_idle(core, w);
}

/* A worker in the middle of a task takes over the core, and this one sleeps. */
static bool swap_for_suspended(struct worker *w)
{
	struct core *core = w->core;
	struct worker *next;

	core_lock(core);
	next = core_take_suspended(core);
	if (next) {
		leave_core(core, w);
		core_list_idle(core, w);
		give_core(core, next);
	}
	core_unlock(core);
	if (!next)
		return false;
	count_search();
	bind_and_wake(next);
	return true;
}

/*
 * Is a worker about to leave this core?  UMT counts that worker as ready until it sleeps,
 * so no other worker leaves before that.
 */
static bool somebody_leaves(const struct core *core)
{
	const struct worker *leaver = core->leaver;

	return rt_counts() && leaver &&
	       at_load(&leaver->wake) == (uint32_t)SIGNAL_NONE;
}

/* If two workers are ready on this core, this one leaves it; but not if the other is
 * about to leave. */
static bool surrender_core(struct worker *w)
{
	struct core *core = w->core;
	bool goes;

	if (core_ready(core) <= 1)
		return false;
	core_lock(core);
	goes = core->active > 1 && !core->suspended && core_ready(core) > 1 &&
	       !somebody_leaves(core);
	if (goes) {
		leave_core(core, w);
		core_list_idle(core, w);
		core->leaver = w;
	}
	core_unlock(core);
	return goes;
}

void park_overloaded(struct worker *w)
{
	struct core *core = w->core;

	if (!at_peek(&core->nr_suspended) || !swap_for_suspended(w)) {
		if (!surrender_core(w))
			return;
		count_up(&w->counts.surrenders);
	}
	await_idle(core, w);
	/* It has another task to do first. */
	if (w->maker) {
		w->maker = NULL;
		count_search();
	}
	w->borrows = false;
	sched_found(w);
}

/* A new thread for the core, which is expected there.  false: it cannot be made, and @w,
 * which is suspended, continues. */
static bool start_successor(struct core *core, const struct worker *w)
{
	struct worker *next;

	count_search();
	if (!worker_start(core))
		return true;
	core_lock(core);
	add_active(core, -1);
	at_store(&core->arriving, 0);
	next = core_take_suspended(core);
	if (next)
		give_core(core, next);
	core_unlock(core);
	if (next)
		bind_and_wake(next);
	else
		at_sub(&rt.idlers, IDLERS_SEARCH);
	return next != w;
}

/* Is no other worker ready on the core, as far as is known? */
static bool is_alone(const struct core *core)
{
	core_assert_locked(core);
	return !rt_counts() || core_ready(core) <= 1;
}

bool park_yield(struct worker *w, bool to_fresh)
{
	struct core *core = w->core;
	bool alone, makes;
	struct worker *next;

	core_lock(core);
	next = core_take_idle(core);
	if (!next && !to_fresh)
		next = core_take_suspended(core);
	alone = !next && is_alone(core);
	makes = alone && !threads_at_limit() && sched_work_visible();
	if (!alone || makes) {
		leave_core(core, w);
		core_list_suspended(core, w);
	}
	if (next)
		give_core(core, next);
	if (makes)
		expect_worker(core);
	core_unlock(core);
	if (alone && !makes)
		return false;
	if (next) {
		count_search();
		bind_and_wake(next);
	}
	if (makes)
		makes = start_successor(core, w);
	await_core(w);
	sched_found(w);
	return !alone || makes;
}

/* The signal is published in ->awaited, because search_by_all() gives it, too. */
static WAKE_PATH void await_signal(struct worker *w, uint32_t *signal,
				   uint64_t limit_ns)
{
	if (unlikely(rt.trace))
		trace_wait(w, true);
	at_store(&w->awaited, signal);
	if (unlikely(limit_ns))
		signal_await_until(signal, now_ns() + limit_ns);
	else
		signal_await(signal);
	at_store(&w->awaited, NULL);
	if (unlikely(rt.trace))
		trace_wait(w, false);
}

WAKE_PATH void park_until(struct worker *w, uint32_t *signal, uint64_t limit_ns)
{
	struct core *core = w->core;

	if (!core) {
		await_signal(w, signal, limit_ns);
		return;
	}
	core_lock(core);
	leave_core(core, w);
	if (is_deserted(core, 1))
		mark_idle(core);
	core_unlock(core);
	if (at_peek(&core->nr_suspended) || sched_work_visible()) {
		count_search();
		if (!park_dispatch(core, false))
			sched_found(w);
	}
	await_signal(w, signal, limit_ns);
	if (unlikely(at_peek(&rt.watching) != at_peek(&w->umt)))
		worker_monitor(w, true);
	core_lock(core);
	unmark_stuck(core, w);
	add_active(core, 1);
	unmark_idle(core);
	core_unlock(core);
	rouse_leader();
}

/* ---- waking ---- */

static bool may_dispatch(struct core *core, bool blocked)
{
	core_assert_locked(core);
	if (blocked)
		return core_ready(core) <= 0 && !at_peek(&core->arriving);
	if (!at_peek(mask_flag(rt.idle, core->index)))
		return false;
	/* A worker that was blocked has continued meanwhile. */
	if (core->active && core_ready(core) > 0 && rt_counts()) {
		unmark_idle(core);
		return false;
	}
	return true;
}

bool park_dispatch(struct core *core, bool blocked)
{
	struct worker *w = NULL;
	bool may;

	core_lock(core);
	may = may_dispatch(core, blocked);
	if (may) {
		w = core_take_suspended(core);
		if (!w)
			w = core_take_idle(core);
		if (w)
			give_core(core, w);
		else
			at_store(&core->wants_thread, 1);
	}
	core_unlock(core);
	if (w)
		bind_and_wake(w);
	else if (may)
		leader_kick();
	return w != NULL;
}

bool park_reinforce(struct core *core)
{
	struct worker *w;

	core_lock(core);
	w = core_take_idle(core);
	if (w)
		give_core(core, w);
	core_unlock(core);
	if (w)
		bind_and_wake(w);
	return w != NULL;
}

WAKE_PATH bool park_hand(struct core *core, struct worker *maker)
{
	struct worker *to;

	core_lock(core);
	/* Only a core that no other worker uses. */
	to = core->active || core->suspended ? NULL : core_take_parked(core);
	if (likely(to)) {
		to->maker = maker;
		give_core(core, to);
	}
	core_unlock(core);
	if (likely(to))
		bind_and_wake(to);
	return to != NULL;
}

void park_mark_idle(struct core *core)
{
	core_lock(core);
	if (core_ready(core) <= 0 && !at_peek(&core->arriving))
		mark_idle(core);
	core_unlock(core);
}

void park_arrive_not(struct core *core, struct worker *visitor)
{
	core_lock(core);
	if (visitor) {
		unmark_stuck(core, visitor);
		at_poke(&visitor->core, NULL);
	} else {
		at_store(&core->arriving, 0);
	}
	add_active(core, -1);
	if (is_deserted(core, 0))
		mark_idle(core);
	core_unlock(core);
}

void park_arrive(struct core *core)
{
	core_lock(core);
	expect_worker(core);
	core_unlock(core);
}

struct worker *park_take_idle(void)
{
	struct worker *w = pool_take_worker();

	for (unsigned i = 0; !w && i < rt.nr_cores; i++) {
		struct core *core = &rt.cores[i];

		core_lock(core);
		w = core_take_parked(core);
		core_unlock(core);
	}
	return w;
}

/* Each worker is counted as searching, and stops at once. */
void park_wake_all(void)
{
	struct worker *w;

	while ((w = park_take_idle())) {
		count_search();
		signal_give(&w->wake);
	}
}

void park_gone(struct worker *w)
{
	struct core *core = w->core;

	if (!core)
		return;
	core_lock(core);
	leave_core(core, w);
	/* From now on it does not count as a worker of the core. */
	at_poke(&w->core, NULL);
	if (is_deserted(core, 1))
		mark_idle(core);
	at_store(&core->wants_thread, 1);
	core_unlock(core);
	leader_kick();
}
