/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How tasks are queued, which of them a worker takes next, and who is woken for them.
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_TASK_SCHED_H
#define RUNTIME_TASK_SCHED_H

#include "cores.h"
#include "node_queue.h"
#include "park.h"
#include "runtime_state.h"
#include "worker.h"

/* ---- task_sched.c ---- */

/* rt.plenty: tasks in a queue that suffice for all cores, and no more than caches hold.  Half
 * of them are for thieves, while the owner does a task.  On a single core thieves only come
 * when it blocks. */
#define QUEUE_PLENTY 256
#define QUEUE_PLENTY_ALONE 16

/*
 * The worker's queue holds plenty of tasks.  Its ->plenty is set, and tasks may be done at
 * once, until somebody takes a task and finds less than half of that left.
 */
void sched_plenty(struct worker *w);

/* Into the worker's queue, by O; sched_notify() comes next.  false: no memory. */
static inline __attribute__((always_inline)) bool
queue_own(struct worker *w, struct ktrt_task *task)
{
	bool queued = deque_push(&w->deque, task);

	/* Seen after the push, or by the next worker that searches: sched_notify() orders
	 * it before looking for idlers. */
	if (unlikely(!w->advertised)) {
		w->advertised = true;
		at_store_seq(mask_flag(rt.loaded, w->slot), 1);
	}
	return queued;
}

/* One was taken from the worker's queue. */
static inline void taken_from(struct worker *w)
{
	if (at_load_seq(&w->deque.plenty) &&
	    deque_size(&w->deque) < rt.plenty / 2)
		at_store(&w->deque.plenty, 0);
}

/* Take the newest of the worker's queue, by O. */
static inline struct ktrt_task *pop_own(struct worker *w)
{
	struct ktrt_task *task;

	worker_assert_own(w);
	task = deque_pop(&w->deque);
	if (likely(task)) {
		taken_from(w);
	} else if (w->advertised) {
		w->advertised = false;
		at_store(mask_flag(rt.loaded, w->slot), 0);
	}
	return task;
}

static inline struct node_queue *own_node_queue(const struct worker *w)
{
	return &rt.node_queues[w->core ? w->core->node : 0];
}

/* The least loaded of any would cost a search; its own or the next best. */
static inline struct node_queue *node_queue_of(const struct worker *w,
					       const struct ktrt_task *task)
{
	unsigned node = w && w->core ? (unsigned)w->core->node : 0;

	if (task->node >= 0)
		node = (unsigned)task->node;
	return &rt.node_queues[node < rt.nr_nodes ? node : 0];
}

/* A task that @above waits for: the newest own one, else another's oldest,
 * else from a node queue. */
struct ktrt_task *sched_take_below(struct worker *w, struct ktrt_task *above);
/*
 * Is @task a descendant of @above?  Goes up at most BELOW_STEPS parents.  A thief may
 * ask for a record that is used for something else by now.  Then the answer does not
 * count, but each step reads a record, and nesting falls with each, so that it ends.
 */
bool task_is_below(struct ktrt_task *task, struct ktrt_task *above);
/* The same, and also: the task, or one between it and @above, belongs to @group. */
bool task_is_below_in(struct ktrt_task *task, struct ktrt_task *above,
		      const struct ktrt_group *group);
/* Any task, or NULL. */
struct ktrt_task *sched_take(struct worker *w);
bool sched_work_visible(void);
/* The same, but for what is in the queue of @but. */
bool sched_work_beside(const struct worker *but);
/* A task was queued: somebody may have to be woken. */
void sched_notify(struct worker *w);
/* A worker no longer searches for tasks. */
void sched_found(struct worker *w);
/* The life of a worker; it counts as searching for tasks. */
void sched_work(struct worker *w);

/* ---- steal_tasks.c ---- */

typedef bool (*wanted_func)(struct ktrt_task *task, void *arg);

static inline const struct node *own_node(const struct worker *w)
{
	return &rt.nodes[w->core ? w->core->node : 0];
}

/* The oldest task of another worker, of its own cache, its own node, then of other nodes,
 * the nearest first.  It is one that is wanted (NULL: any). */
struct ktrt_task *steal_task(struct worker *w, wanted_func wanted, void *arg);
/* Are there tasks, in a node queue or at the ends of other workers' queues, that are not below
 * @above?  If a record is used anew meanwhile, the answer may be wrong once. */
bool steal_leaves_others(struct worker *w, struct ktrt_task *above);

/* ---- wake.c ---- */

/* The core that an attached thread runs on; NULL: its CPU is not the runtime's. */
struct core *core_below(struct worker *w);

/* Wake a worker for an idle core, if there is one.  The core that the attached thread @w
 * runs on comes last.  The caller has added one to the count of searching workers. */
void wake_worker(struct worker *w);
/* The attached thread is about to wait.  Return: true if the worker of its core can
 * take over, or works and tasks are queued: the thread had better sleep than spin on
 * that CPU.  Then no other CPU has to wake up. */
bool wake_below(struct worker *w);
/* The same for one task in the queue of the attached thread, for which that will wait: the
 * worker takes it by park_hand(). */
bool wake_to_hand(struct worker *w);

/* ---- child_limit.c ---- */

/* After every CHILDREN_PER_CHECK children a task checks whether there are too many.  If
 * so it runs some of them, or waits. */
#define CHILDREN_PER_CHECK 64
void child_limit_apply(struct worker *w, struct ktrt_task *parent);
/* Make a child without that check: the call runs no other task, and waits for none. */
int spawn_beside_limit(struct worker *w, ktrt_func func, void *arg,
		       const struct ktrt_attr *attr);
/* It is complete.  The next child is checked just if it would have been without that one, so
 * no number of these steps over all checks.  @spawned_before: maker->spawned before it. */
void child_limit_forget(struct ktrt_task *maker, uint64_t spawned_before);

/* ---- short_tasks.c ---- */

/* Run a task that another worker made, and rest if such tasks are not worth taking. */
struct ktrt_task *short_tasks_run(struct worker *w, struct ktrt_task *task);
/* Nodes that are taken between two verdicts, at first. */
#define SHORT_TASKS_JUDGED 8
/* When the runtime begins. */
void short_tasks_begin(void);
/* The worker has a core and took @nr nodes of a graph from @victim.  If nodes seem not to be
 * worth taking, this sets w->fast. */
void short_tasks_judge(struct worker *w, struct worker *victim, uint32_t nr);
/* Take nothing from w->fast as long as it is that fast; if @awaited is not NULL, only as
 * long as @awaited has children. */
void short_tasks_rest(struct worker *w, const struct ktrt_task *awaited);

/* ---- early_tasks.c ---- */

/* The core gets a worker for a task at @now, because all of its workers are blocked. */
void early_note_served(struct core *core, uint64_t now);
/* Other workers are ready on the core, and this one has done a task of @func.  Return: a task
 * of @func that it may begin all the same, because such tasks block early; or NULL. */
struct ktrt_task *early_take(struct worker *w, ktrt_func func);

#endif /* RUNTIME_TASK_SCHED_H */
