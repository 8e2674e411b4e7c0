/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Leaves tasks that do next to nothing to the worker that made them.
 *
 * Taking another worker's task costs cache misses on both sides: both write to its
 * record, to the counts of its dependences and to the queue.  So if the functions do
 * next to nothing, one worker is faster than two (16 readers of a datum that is written
 * again and again: 70 ns each by one worker, 230 to 380 by two).  A worker that has run
 * several such tasks in a row rests, longer each time.  Meanwhile the maker takes tasks
 * that are ready in this worker's queue when it helps, waits, or has nothing else to do.
 * The rest ends early if the maker neither makes nor runs tasks.  No worker rests because of
 * an attached thread that did no tasks itself when it last could.
 *
 * Nodes of a graph that was made once have no maker that helps.  When a thief has taken
 * several nodes in quick succession, it watches how fast the last victim is by itself.  If
 * the victim runs a node in the time in which two caches exchange a line or two, both
 * together would be slower, and the thief leaves it alone.
 *
 * This rest ends one watch after the nodes become worth taking, and after ->rest_ns at the
 * latest, because larger nodes may be queued behind the small ones.  Then JUDGED_AGAIN
 * nodes are taken before the next rest.  A thief takes several nodes at a time if they wait
 * side by side.  That costs less, so such nodes are worth taking if they last half as long.
 *
 * oneTBB's thieves pause for 1000 to 2000 ticks between attempts, whatever the tasks are
 * (prolonged_pause() in its scheduler_common.h).  The idea that the last quantum of a
 * thief says whether it should continue is from Agrawal, He and Leiserson, "Adaptive work
 * stealing with parallelism feedback" (PPoPP 2007).
 */
#include "rt.h"

/* Every FOREIGN_TIMED-th task of another worker is timed; after FOREIGN_VERDICT of them
 * the worker decides. */
#define FOREIGN_TIMED 4
#define FOREIGN_VERDICT 16
#define SHORT_TASK_NS 200
#define REST_MIN_NS 4000
#define REST_MAX_NS 64000
#define REST_STUCK_NS 10000

/* Return: how long to rest now; 0: such tasks are worth taking. */
static uint64_t judge_foreign_tasks(struct worker *w)
{
	const uint64_t limit_ns =
		FOREIGN_VERDICT / FOREIGN_TIMED * SHORT_TASK_NS;
	bool are_short = w->foreign_ns < limit_ns;

	w->foreign_ns = 0;
	if (!are_short)
		w->rest_ns = 0;
	else if (!w->rest_ns)
		w->rest_ns = REST_MIN_NS;
	else if (w->rest_ns < REST_MAX_NS)
		w->rest_ns *= 2;
	return w->rest_ns;
}

/* Changes whenever the maker makes or does tasks. */
static uint64_t count_moves(const struct worker *maker)
{
	return at_peek(&maker->made) + at_peek(&maker->counts.tasks);
}

/* Does it do tasks itself that nobody takes?  An attached thread does so while it visits a
 * core; outside of calls what it did last time tells. */
static bool maker_helps(const struct worker *maker)
{
	return at_peek(&maker->core) || at_peek(&maker->helps);
}

/* The maker may be an attached thread that needs this CPU, and has no core. */
static void rest_briefly(const struct worker *maker)
{
	if (!at_peek(&maker->core)) {
		sched_yield();
		return;
	}
	for (int i = 0; i < 32; i++)
		cpu_relax();
}

static void rest_from_maker(struct worker *w, const struct worker *maker)
{
	uint64_t now = now_ns(), end_ns = now + w->rest_ns, moved_ns = now;
	uint64_t seen = count_moves(maker);

	while (now < end_ns && !at_peek(&rt.stop) && maker_helps(maker) &&
	       !core_overloaded(w->core)) {
		rest_briefly(maker);
		now = now_ns();
		if (count_moves(maker) != seen) {
			seen = count_moves(maker);
			moved_ns = now;
		} else if (now - moved_ns > REST_STUCK_NS) {
			w->rest_ns = 0;
			return;
		}
	}
}

struct ktrt_task *short_tasks_run(struct worker *w, struct ktrt_task *task)
{
	unsigned slot = task->maker - 1u;
	uint32_t nr = ++w->nr_foreign;
	const struct worker *maker;

	if (nr % FOREIGN_TIMED)
		return task_run(w, task);
	task = task_run_timed(w, task);
	if (nr % FOREIGN_VERDICT || !judge_foreign_tasks(w))
		return task;
	maker = at_load(&rt.workers[slot]);
	if (!maker || !maker_helps(maker))
		return task;
	if (task)
		task_ready(w, task);
	rest_from_maker(w, maker);
	return NULL;
}

/* ---- nodes of graphs ---- */

/* After a rest so many are tried; where there was none the next verdict comes
 * later, up to so many. */
#define JUDGED_AGAIN 2
#define JUDGED_MOST 1024
/* A watch takes up to so many times as long as the first one. */
#define WATCHES_GROW 8

void short_tasks_begin(void)
{
	rt.nodes_judged = (struct node_times){
		.taken_ns = 4000,
		.fast_ns = 150,
		.fast_wide_ns = 75,
		.watch_ns = 2000,
		.rest_ns = 128000,
	};
}

void short_tasks_judge(struct worker *w, struct worker *victim, uint32_t nr)
{
	uint64_t now;

	w->nr_taken += nr;
	if (likely(w->nr_taken < w->judged))
		return;
	now = now_ns();
	if (now - w->judged_ns < w->nr_taken * rt.nodes_judged.taken_ns) {
		w->fast = victim;
		w->fast_ns = nr > 1 ? rt.nodes_judged.fast_wide_ns
				    : rt.nodes_judged.fast_ns;
	} else if (w->judged < SHORT_TASKS_JUDGED) {
		w->judged = SHORT_TASKS_JUDGED;
	}
	w->judged_ns = now;
	w->nr_taken = 0;
}

/* Is there something besides the tasks of the worker that is left alone? */
static bool is_wanted(const struct worker *w, const struct ktrt_task *awaited)
{
	return at_peek(&rt.stop) || core_overloaded(w->core) ||
	       (awaited && !task_outstanding(awaited)) ||
	       sched_work_beside(w->fast);
}

/* Look at it for @watch_ns: is it fast?  *@now is the time before and after. */
static bool stays_fast(const struct worker *w, const struct ktrt_task *awaited,
		       uint64_t watch_ns, uint64_t *now)
{
	uint64_t begin_ns = *now, end_ns = begin_ns + watch_ns;
	uint64_t done = at_peek(&w->fast->counts.tasks);

	while (*now < end_ns) {
		if (is_wanted(w, awaited))
			return false;
		for (int i = 0; i < 16; i++)
			cpu_relax();
		*now = now_ns();
	}
	done = at_peek(&w->fast->counts.tasks) - done;
	return done * w->fast_ns >= *now - begin_ns;
}

void short_tasks_rest(struct worker *w, const struct ktrt_task *awaited)
{
	uint64_t now = now_ns(), end_ns = now + rt.nodes_judged.rest_ns;
	uint64_t watch_ns = rt.nodes_judged.watch_ns;
	bool rested = false;

	while (now < end_ns && stays_fast(w, awaited, watch_ns, &now)) {
		rested = true;
		if (watch_ns < rt.nodes_judged.watch_ns * WATCHES_GROW)
			watch_ns *= 2;
	}
	if (rested)
		w->judged = JUDGED_AGAIN;
	else if (w->judged < JUDGED_MOST)
		w->judged *= 2;
	w->fast = NULL;
	w->judged_ns = now;
	w->nr_taken = 0;
}
