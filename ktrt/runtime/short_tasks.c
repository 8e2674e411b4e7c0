/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Leaves tasks that do next to nothing to the worker that made them.
 *
 * Taking another worker's task costs cache misses on both sides: both write to its
 * record, to the counts of its dependences and to the queue.  So if the functions do
 * next to nothing, one worker is faster than two (16 readers of a datum that is
 * written over and over: 70 ns each by one worker, 230 to 380 by two).  A worker that
 * has done a number of such tasks in a row rests, longer each time.  The maker gets
 * the task that is ready here when it helps, waits, or has nothing else to do.  The
 * rest ends early if the maker makes and does no tasks meanwhile.
 */
#include "rt.h"

/* Of other workers' tasks every FOREIGN_TIMED-th is timed; after FOREIGN_VERDICT of
 * them the worker decides. */
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

static void rest_from_maker(struct worker *w, const struct worker *maker)
{
	uint64_t now = now_ns(), end_ns = now + w->rest_ns, moved_ns = now;
	uint64_t seen = count_moves(maker);

	while (now < end_ns && !at_peek(&rt.stop) &&
	       !core_overloaded(w->core)) {
		for (int i = 0; i < 32; i++)
			cpu_relax();
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
	struct worker *maker = at_load(&rt.workers[task->maker - 1]);
	uint32_t nr = ++w->nr_foreign;

	if (nr % FOREIGN_TIMED)
		return sched_run(w, task);
	task = sched_run_timed(w, task);
	if (nr % FOREIGN_VERDICT || !judge_foreign_tasks(w) || !maker)
		return task;
	if (task)
		task_ready(w, task);
	rest_from_maker(w, maker);
	return NULL;
}
