/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The life of a task from the call that makes it to its completion, and
 * waiting for children.  Does not own when it may start (dependences.c) nor where it
 * runs (task_sched.c).
 *
 * A record is used again once its task is complete; a parent's outlives its
 * children.  Codes go up: what nobody waited for is the parent's code.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "brief.h"
#include "dependences.h"
#include "rt.h"
#include "common/struct_size.h"

#define PRIORITY_MAX 32767

void error_keep(int *error, int code)
{
	int none = 0;

	if (code && (at_peek(error) || !at_cas(error, &none, code)))
		ktrt_code_drop(code);
}

int error_take(int *error)
{
	return at_peek(error) ? at_swap(error, 0) : 0;
}

/* ---- making ---- */

/*
 * An attached thread makes tasks that others do.  If their records stayed with
 * those it would take one after the other that no cache holds any more: so one
 * goes to and fro.
 */
static inline struct ktrt_task *take_back(struct ktrt_task *outer)
{
	return at_peek(&outer->back) ? at_swap(&outer->back, NULL) : NULL;
}

WAKE_PATH struct ktrt_task *task_new(struct worker *w, ktrt_func func,
				     void *arg)
{
	struct ktrt_task *parent = w->current;
	bool loaned = parent && unlikely(parent->flags & TASK_OUTER);
	struct ktrt_task *task = loaned ? take_back(parent) : NULL;

	if (!task)
		task = pool_get(&rt.tasks, &w->tasks);
	if (unlikely(!task))
		return NULL;
	task_renew(task, parent, func, arg);
	task->flags = loaned ? TASK_LOANED : 0;
	task->maker = w->core ? (uint16_t)(w->slot + 1) : 0;
	return task;
}

void task_free(struct worker *w, struct ktrt_task *task)
{
	if (unlikely(task->flags & TASK_ARG_ALLOCATED))
		free(task->arg);
	if (unlikely(task->flags & TASK_ACCESS_ALLOCATED))
		free(task->access);
	if (unlikely(task->flags & TASK_RUN)) {
		graph_run_complete(task);
		return;
	}
	/* The parent is not complete yet. */
	if (unlikely(task->flags & TASK_LOANED))
		task = at_swap(&task->parent->back, task);
	if (likely(task))
		pool_put(&rt.tasks, w ? &w->tasks : NULL, task);
}

/* The least loaded of any would cost a search; its own or the next best. */
static struct node_queue *node_queue_of(struct worker *w,
					const struct ktrt_task *task)
{
	unsigned node = w && w->core ? (unsigned)w->core->node : 0;

	if (task->node >= 0)
		node = (unsigned)task->node;
	return &rt.node_queues[node < rt.nr_nodes ? node : 0];
}

/* Where memory is too short to queue it the task is done at once. */
static void queue_failed(struct worker *w, struct ktrt_task *task)
{
	while (task && w)
		task = sched_run(w, task);
}

WAKE_PATH void task_ready(struct worker *w, struct ktrt_task *task)
{
	bool queued;

	if (unlikely(!w || task->flags & TASK_NODE_QUEUE)) {
		queued = node_queue_put(node_queue_of(w, task), task);
		/* Nobody is here to do it at once; that needs no memory. */
		if (unlikely(!queued && !w)) {
			task->priority = 0;
			queued = node_queue_put(node_queue_of(w, task), task);
		}
	} else {
		queued = deque_push(&w->deque, task);
		if (unlikely(!w->advertised)) {
			/* Seen after the push, or by who looks for it next:
			 * sched_notify() orders it before looking for idlers */
			w->advertised = true;
			at_store_seq(mask_flag(rt.loaded, w->slot), 1);
		}
	}
	if (unlikely(!queued))
		queue_failed(w, task);
	else
		sched_notify(w);
}

static inline void child_made(struct worker *w, struct ktrt_task *parent)
{
	if (unlikely(!(++parent->spawned % ROOM_LOOKS)))
		room_make(w, parent);
}

/* Tasks in the middle of each other, so that stacks suffice. */
#define NEST_MAX 64

/*
 * Its own queue holds plenty: a brief task without dependences is done at once,
 * as others take from the queue meanwhile.
 */
static inline bool does_at_once(struct worker *w, ktrt_func func)
{
	if (likely(!at_peek(&w->deque.plenty)) || w->nest >= NEST_MAX)
		return false;
	if (unlikely(w->at_once != func))
		w->at_once = func_is_brief(func) ? func : NULL;
	return w->at_once;
}

static inline struct ktrt_task *take_blank(struct worker *w)
{
	struct ktrt_task *task = w->blank, *parent = w->current;

	if (unlikely(!task))
		return task_new(w, NULL, NULL);
	w->blank = NULL;
	at_poke(&task->parent, parent);
	at_poke(&task->depth, parent->depth + 1);
	return task;
}

static inline void do_at_once(struct worker *w, struct ktrt_task *task,
			      ktrt_func func, void *arg)
{
	w->nest++;
	task = sched_run_inside(w, task, func, arg);
	w->nest--;
	if (unlikely(task))
		task_ready(w, task);
}

static WAKE_PATH void queue_child(struct worker *w, struct ktrt_task *task)
{
	w->at_once = NULL;
	if (unlikely(deque_holds(&w->deque, QUEUE_PLENTY)) && w->core &&
	    !at_peek(&w->deque.plenty))
		sched_plenty(w);
	child_made(w, task->parent);
	task_ready(w, task);
}

WAKE_PATH int ktrt_spawn(ktrt_func func, void *arg)
{
	struct worker *w = current_worker();
	struct ktrt_task *task;
	bool now;

	if (unlikely(!w))
		return -ESRCH;
	now = does_at_once(w, func);
	task = now ? take_blank(w) : task_new(w, func, arg);
	if (unlikely(!task))
		return -ENOMEM;
	if (now)
		do_at_once(w, task, func, arg);
	else
		queue_child(w, task);
	return 0;
}

static int copy_arg(struct ktrt_task *task, const void *arg, size_t bytes)
{
	task->arg = task->arg_inline;
	if (bytes > ARG_INLINE) {
		task->arg = malloc(bytes);
		if (!task->arg)
			return -ENOMEM;
		task->flags |= TASK_ARG_ALLOCATED;
	}
	memcpy(task->arg, arg, bytes);
	return 0;
}

int ktrt_spawn_copy(ktrt_func func, const void *arg, size_t bytes)
{
	struct worker *w = current_worker();
	struct ktrt_task *task;

	if (unlikely(!w))
		return -ESRCH;
	task = task_new(w, func, NULL);
	if (unlikely(!task))
		return -ENOMEM;
	if (unlikely(copy_arg(task, arg, bytes))) {
		task_free(w, task);
		return -ENOMEM;
	}
	if (does_at_once(w, func))
		do_at_once(w, task, func, task->arg);
	else
		queue_child(w, task);
	return 0;
}

static bool dep_is_valid(const struct ktrt_dep *dep)
{
	return dep->mode >= KTRT_IN && dep->mode <= KTRT_INOUT &&
	       dep->len <= UINTPTR_MAX - (uintptr_t)dep->addr;
}

static bool attr_is_valid(const struct ktrt_attr *attr)
{
	if (attr->flags & ~KTRT_ALWAYS)
		return false;
	if (attr->priority > PRIORITY_MAX || attr->priority < -PRIORITY_MAX - 1)
		return false;
	if (attr->node < -1 || (attr->nr_deps && !attr->deps))
		return false;
	for (size_t i = 0; i < sizeof(attr->reserved) / sizeof(unsigned); i++)
		if (attr->reserved[i])
			return false;
	for (size_t i = 0; i < attr->nr_deps; i++)
		if (!dep_is_valid(&attr->deps[i]))
			return false;
	return true;
}

int task_read_attr(struct ktrt_attr *own, const struct ktrt_attr *attr)
{
	/* The node is the last field whose default is not zero. */
	int error = struct_size_read(own, sizeof(*own), attr,
				     STRUCT_SIZE_TO(struct ktrt_attr, node));

	return error || attr_is_valid(own) ? error : -EINVAL;
}

/* Nodes are known by the kernel's numbers outside, by index inside. */
void task_take_attr(struct ktrt_task *task, const struct ktrt_attr *attr)
{
	if (attr->flags & KTRT_ALWAYS)
		task->flags |= TASK_ALWAYS;
	task->priority = (int16_t)attr->priority;
	task->node = (int16_t)cores_node(attr->node);
	if (task->priority || task->node >= 0)
		task->flags |= TASK_NODE_QUEUE;
	task->group = attr->group;
}

static void group_less(struct ktrt_group *group)
{
	if (at_sub(&group->live, 1) == LIVE_WAITED + 1)
		signal_give(&group->wake);
}

/* Of another version: by a copy. */
__attribute__((noinline)) static int spawn_by_copy(ktrt_func func, void *arg,
						   const struct ktrt_attr *attr)
{
	struct ktrt_attr own;
	int error = task_read_attr(&own, attr);

	return error ? error : ktrt_spawn_attr(func, arg, &own);
}

int ktrt_spawn_attr(ktrt_func func, void *arg, const struct ktrt_attr *attr)
{
	struct worker *w = current_worker();
	struct ktrt_task *task;
	bool ready = true;
	int error = 0;

	if (!attr)
		return -EINVAL;
	if (attr->struct_size != sizeof(*attr))
		return spawn_by_copy(func, arg, attr);
	if (!attr_is_valid(attr))
		return -EINVAL;
	if (!w)
		return -ESRCH;
	task = task_new(w, func, arg);
	if (!task)
		return -ENOMEM;
	task_take_attr(task, attr);
	/* Before it can run: it may be ready, and done, by deps_add(). */
	if (task->group)
		at_add(&task->group->live, 1);
	if (attr->arg_bytes)
		error = copy_arg(task, arg, attr->arg_bytes);
	if (!error && attr->nr_deps)
		error = deps_add(w, task, attr->deps, attr->nr_deps, &ready);
	if (error) {
		if (task->group)
			group_less(task->group);
		task_free(w, task);
		return error;
	}
	child_made(w, w->current);
	if (ready)
		task_ready(w, task);
	return 0;
}

/* ---- completing ---- */

/* Queue what became ready; keep one to be run next by this worker. */
static void take_ready(struct worker *w, struct ready *ready,
		       struct ktrt_task **next)
{
	struct ktrt_task *task = ready->first, *after;

	for (; task; task = after) {
		after = task->next;
		if (w && !*next && !(task->flags & TASK_NODE_QUEUE))
			*next = task;
		else
			task_ready(w, task);
	}
}

/* One child less; true if the parent is complete by that. */
static bool parent_less(struct worker *w, struct ktrt_task *parent)
{
	uint64_t live;

	/* The parent's body is on this thread's stack: as if never made. */
	if (w && w->current == parent) {
		parent->spawned--;
		return false;
	}
	live = at_sub(&parent->live, 1) - 1;
	if (likely((uint32_t)live))
		return false;
	if (live & LIVE_WAITED)
		signal_give(&parent->wake);
	return !live;
}

struct ktrt_task *task_complete(struct worker *w, struct ktrt_task *task)
{
	struct ktrt_task *next = NULL, *parent, *node;
	struct ready ready;

	do {
		parent = task->parent;
		node = unlikely(task->flags & TASK_FOR_NODE) ? task->of : NULL;
		if (task->nr_access) {
			ready_init(&ready);
			deps_done(w, task, &ready);
			take_ready(w, &ready, &next);
		}
		if (unlikely(task->child_error))
			error_keep(&task->error, task->child_error);
		if (task->group) {
			error_keep(&task->group->error, task->error);
			group_less(task->group);
		} else if (unlikely(task->error)) {
			error_keep(&parent->child_error, task->error);
		}
		task_free(w, task);
		if (unlikely(node) && !graph_node_complete(w, node, &next))
			break;
		task = parent;
	} while (parent && parent_less(w, parent));
	return next;
}

struct ktrt_task *task_sink_complete(struct worker *w, struct ktrt_task *node)
{
	struct ktrt_task *run = node->parent;

	return parent_less(w, run) ? task_complete(w, run) : NULL;
}

struct ktrt_task *task_ended(struct worker *w, struct ktrt_task *task,
			     int error)
{
	uint64_t more = task->spawned - task->credited - LIVE_BODY;

	if (unlikely(error))
		error_keep(&task->error, error);
	if (task->domain)
		deps_close(w, task);
	/* Without children and events nobody else touches the number. */
	if (at_load(&task->live) + more == 0)
		return task_complete(w, task);
	if (at_add(&task->live, more) + more == 0)
		return task_complete(w, task);
	return NULL;
}

/* ---- waiting ---- */

int32_t task_outstanding(const struct ktrt_task *task)
{
	return (int32_t)(uint32_t)(at_load(&task->live) + task->spawned -
				   task->credited);
}

#define WAIT_SPINS 2000

/* Some time for the last children to end elsewhere; true: they did. */
static bool spin_for(struct worker *w, struct ktrt_task *task)
{
	for (unsigned i = 0; i < WAIT_SPINS; i++) {
		if (!task_outstanding(task))
			return true;
		if (w->core && i % 64 == 63 && sched_work_visible())
			return false;
		cpu_relax();
	}
	return false;
}

/* Nothing is left to help with: sleep until the last child says so. */
static WAKE_PATH void wait_for_signal(struct worker *w, struct ktrt_task *task)
{
	uint64_t more = task->spawned - task->credited + LIVE_WAITED;

	at_poke(&task->wake, (uint32_t)SIGNAL_NONE);
	task->credited = task->spawned;
	if ((uint32_t)(at_add(&task->live, more) + more))
		park_until(w, &task->wake, 0);
	at_sub(&task->live, LIVE_WAITED);
}

void task_help(struct worker *w, struct ktrt_task *task,
	       const struct ktrt_task *above)
{
	do
		task = sched_run(w, task);
	while (task && task->parent == above && likely(!sched_urgent(w)));
	if (task)
		task_ready(w, task);
}

/* The quick way; the other where no thread will come for what that misses. */
static struct ktrt_task *take_or_search(struct worker *w,
					struct ktrt_task *above)
{
	const struct aim aim = { above, NULL };
	struct ktrt_task *task = sched_take_below(w, above);

	return task ? task : search_wanted(w, &aim);
}

WAKE_PATH int task_wait(struct worker *w, struct ktrt_task *task)
{
	while (task_outstanding(task)) {
		/* An attached thread has no core to work on. */
		struct ktrt_task *below =
			w->core ? sched_take_below(w, task) : NULL;

		if (!below && wake_below(w)) {
			wait_for_signal(w, task);
			continue;
		}
		if (!below && spin_for(w, task))
			break;
		if (!below && w->core)
			below = take_or_search(w, task);
		if (below)
			task_help(w, below, task);
		else
			wait_for_signal(w, task);
	}
	return error_take(&task->child_error);
}

WAKE_PATH int ktrt_wait(void)
{
	struct worker *w = current_worker();

	if (!w)
		return -ESRCH;
	if (!w->core) {
		w->lone = w->current->spawned - w->waited == 1;
		w->waited = w->current->spawned;
	}
	return task_wait(w, w->current);
}

bool task_is_cancelled(const struct ktrt_task *task)
{
	for (; task; task = task->parent)
		if (task->group && at_peek(&task->group->cancelled))
			return true;
	return false;
}
