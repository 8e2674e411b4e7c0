/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Making tasks, and their records.  Does not own when a task may start (dependences.c,
 * epochs.c), where it runs (task_sched.c) and how (task_run.c), how it ends
 * (task_complete.c), nor waiting for it (task_wait.c).
 *
 * A record is used again once its task is complete; a parent's outlives its children.
 *
 * Locking: rt.h; M and B are in here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access_arrays.h"
#include "func_kinds.h"
#include "dependences.h"
#include "rt.h"
#include "trace.h"
#include "common/struct_size.h"

#define PRIORITY_MAX 32767

/* ---- making ---- */

/*
 * An attached thread makes tasks that other workers run.  If the records stayed with those
 * workers, the thread would always take records that are in no cache.  So one record is
 * lent to each task in turn and comes back, unless the thread did the task itself.
 */
static inline struct ktrt_task *take_back(struct ktrt_task *outer)
{
	return at_peek(&outer->back) ? at_swap(&outer->back, NULL) : NULL;
}

/* Inlined where most tasks are made: a call would cost a tenth of making one. */
static inline __attribute__((always_inline)) struct ktrt_task *
make_task(struct worker *w, ktrt_func func, void *arg)
{
	struct ktrt_task *parent = w->current;
	unsigned above = parent ? parent->flags & (TASK_OUTER | TASK_FINAL) : 0;
	bool loaned = unlikely(above & TASK_OUTER);
	struct ktrt_task *task = loaned ? take_back(parent) : NULL;

	worker_assert_own(w);
	if (!task)
		task = pool_get(&rt.tasks, &w->tasks);
	if (unlikely(!task))
		return NULL;
	task_renew(task, parent, func, arg);
	task->flags = loaned ? TASK_LOANED : (uint16_t)above;
	task->maker = (uint16_t)(w->slot + 1);
	return task;
}

WAKE_PATH struct ktrt_task *task_new(struct worker *w, ktrt_func func,
				     void *arg)
{
	return make_task(w, func, arg);
}

static void __attribute__((noinline))
free_access(struct worker *w, struct ktrt_task *task)
{
	if (task_has_proxies(task))
		proxies_complete(w, task);
	if (task->access != task->access_inline)
		access_array_put(w, task->access);
}

void task_free(struct worker *w, struct ktrt_task *task)
{
	worker_assert_own(w);
	if (unlikely(task->flags & TASK_ARG_ALLOCATED))
		free(task->arg);
	if (unlikely(task->flags & TASK_ACCESS_ALLOCATED))
		free_access(w, task);
	if (unlikely(task->flags & TASK_RUN)) {
		graph_run_complete(task);
		return;
	}
	/* The parent is not complete yet, so its record exists. */
	if (unlikely(task->flags & TASK_LOANED) &&
	    !(w && w->outer == task->parent))
		task = at_swap(&task->parent->back, task);
	if (likely(task))
		pool_put(&rt.tasks, w ? &w->tasks : NULL, task);
}

/* There was no memory to queue the task: run it at once. */
static void queue_failed(struct worker *w, struct ktrt_task *task)
{
	while (task && w)
		task = task_run(w, task);
}

/*
 * Tell the maker of an undeferred task, which waits for that, to run it.  Once TASK_MET is
 * set the maker may complete and free the task, and the signal may reach a record that is
 * another task by then.  The thread that waits for that task checks again.
 *
 * Return: false if the maker has left; then the task is queued like any other.
 */
static bool __attribute__((noinline, cold))
tell_maker(struct worker *w, struct ktrt_task *task)
{
	if (task->flags & TASK_PROXY) {
		proxy_ready(w, task);
		return true;
	}
	if (at_or(&task->flags, TASK_MET) & TASK_LEFT)
		return turns_missing(task) && !turns_take(task);
	signal_give(&task->wake);
	return true;
}

WAKE_PATH void task_ready(struct worker *w, struct ktrt_task *task)
{
	bool queued;

	worker_assert_own(w);
	if (unlikely(task->flags & TASK_UNDEFERRED) && tell_maker(w, task))
		return;
	if (unlikely(!w || task->flags & TASK_NODE_QUEUE)) {
		queued = node_queue_put(node_queue_of(w, task), task);
		/* No worker is here to run it.  Without a priority no memory is needed. */
		if (unlikely(!queued && !w)) {
			task->priority = 0;
			queued = node_queue_put(node_queue_of(w, task), task);
		}
	} else {
		queued = queue_own(w, task);
	}
	if (unlikely(!queued))
		queue_failed(w, task);
	else
		sched_notify(w);
}

/* Called by the thread that runs the body of the parent. */
static inline void child_made(struct worker *w, struct ktrt_task *parent)
{
	rank_assert(w == self_worker && parent == w->current);
	if (unlikely(!(++parent->spawned % CHILDREN_PER_CHECK)))
		child_limit_apply(w, parent);
}

/*
 * If the worker's own queue holds plenty, a brief task without dependences is done at
 * once: others have enough to take from the queue.  One may do so in another, as deep as the
 * stack suffices.
 */
static inline bool does_at_once(struct worker *w, ktrt_func func)
{
	if (likely(!at_peek(&w->deque.plenty)) || !stack_suffices(w))
		return false;
	/* The blank record has no flags, so no task that should inherit TASK_FINAL is run in it. */
	if (unlikely(w->current->flags & TASK_FINAL))
		return false;
	/* An attached thread on a CPU of the program's own leaves tasks to workers. */
	if (unlikely(!w->core && !core_below(w)))
		return false;
	if (unlikely(w->at_once != func))
		w->at_once = func_suits_maker(func) ? func : NULL;
	return w->at_once;
}

/* Run the task on the stack of its maker.  The maker continues only afterwards, so
 * the limit on children is not needed.  It need not wait for what it makes in there. */
static void __attribute__((noinline))
do_undeferred(struct worker *w, struct ktrt_task *task)
{
	w->lone = false;
	task->parent->spawned++;
	task = task_run(w, task);
	if (task)
		task_ready(w, task);
}

static inline __attribute__((always_inline)) void
queue_child_here(struct worker *w, struct ktrt_task *task)
{
	/* Its parent's. */
	if (unlikely(task->flags & TASK_FINAL)) {
		do_undeferred(w, task);
		return;
	}
	w->at_once = NULL;
	if (unlikely(deque_holds(&w->deque, rt.plenty)) &&
	    !at_peek(&w->deque.plenty))
		sched_plenty(w);
	child_made(w, task->parent);
	/* As task_ready(), but the task has none of the flags for which that checks. */
	if (unlikely(!queue_own(w, task)))
		queue_failed(w, task);
	else
		sched_notify(w);
}

static WAKE_PATH __attribute__((noinline)) void
queue_child(struct worker *w, struct ktrt_task *task)
{
	queue_child_here(w, task);
}

/* Functions of their own, so that each saves only the registers that it needs. */
static __attribute__((noinline)) int spawn_now(struct worker *w, ktrt_func func,
					       void *arg)
{
	struct ktrt_task *task = task_take_blank(w);

	if (unlikely(!task))
		return -ENOMEM;
	task_run_inside(w, task, func, arg);
	return 0;
}

static WAKE_PATH __attribute__((noinline)) int
spawn_queued(struct worker *w, ktrt_func func, void *arg)
{
	struct ktrt_task *task = make_task(w, func, arg);

	if (unlikely(!task))
		return -ENOMEM;
	queue_child_here(w, task);
	return 0;
}

WAKE_PATH int ktrt_spawn(ktrt_func func, void *arg)
{
	struct worker *w = current_worker();

	if (unlikely(!w || !func))
		return w ? -EINVAL : -ESRCH;
	return does_at_once(w, func) ? spawn_now(w, func, arg)
				     : spawn_queued(w, func, arg);
}

/*
 * Copies an argument that fits into a record by a few overlapping moves of fixed size: a
 * call of memcpy() costs a fifth of making a task.
 */
static inline void copy_inline(char *to, const char *from, size_t bytes)
{
	if (likely(bytes >= 8 && bytes <= 16)) {
		memcpy(to, from, 8);
		memcpy(to + bytes - 8, from + bytes - 8, 8);
	} else if (likely(bytes > 16 && bytes <= 32)) {
		memcpy(to, from, 16);
		memcpy(to + bytes - 16, from + bytes - 16, 16);
	} else if (likely(bytes > 32)) {
		memcpy(to, from, 32);
		memcpy(to + bytes - 32, from + bytes - 32, 32);
	} else if (bytes) {
		memcpy(to, from, bytes);
	}
}

static int make_arg(struct ktrt_task *task, size_t bytes)
{
	task->arg = task->arg_inline;
	if (likely(bytes <= ARG_INLINE))
		return 0;
	task->arg = malloc(bytes);
	if (!task->arg)
		return -ENOMEM;
	task->flags |= TASK_ARG_ALLOCATED;
	return 0;
}

static int copy_arg(struct ktrt_task *task, const void *arg, size_t bytes)
{
	int error = make_arg(task, bytes);

	if (likely(bytes <= ARG_INLINE))
		copy_inline(task->arg, arg, bytes);
	else if (!error)
		memcpy(task->arg, arg, bytes);
	return error;
}

int ktrt_spawn_copy(ktrt_func func, const void *arg, size_t bytes)
{
	struct worker *w = current_worker();
	struct ktrt_task *task;
	bool now;

	if (unlikely(!w || !func || (!arg && bytes)))
		return w ? -EINVAL : -ESRCH;
	now = does_at_once(w, func);
	task = now && bytes <= ARG_INLINE ? task_take_blank(w)
					  : task_new(w, func, NULL);
	if (unlikely(!task))
		return -ENOMEM;
	if (unlikely(copy_arg(task, arg, bytes))) {
		task_free(w, task);
		return -ENOMEM;
	}
	if (now)
		task_run_inside(w, task, func, task->arg);
	else
		queue_child(w, task);
	return 0;
}

WAKE_PATH void *ktrt_spawn_begin(ktrt_func func, size_t bytes, unsigned flags)
{
	struct worker *w = current_worker();
	struct ktrt_task *task;

	if (unlikely(!w || !func || bytes > ARG_INLINE || flags & ~KTRT_ALWAYS))
		return NULL;
	/* A blank has no flags. */
	if (unlikely(!flags && does_at_once(w, func))) {
		task = task_take_blank(w);
		w->begun_now = task;
	} else {
		task = make_task(w, func, NULL);
		/* The program may not have called ktrt_spawn_end() for the last one. */
		w->begun_now = false;
	}
	if (unlikely(!task))
		return NULL;
	if (flags)
		task->flags |= TASK_ALWAYS;
	task->arg = task->arg_inline;
	return task->arg_inline;
}

WAKE_PATH void ktrt_spawn_end(ktrt_func func, void *arg)
{
	struct worker *w = self_worker;
	struct ktrt_task *task =
		(struct ktrt_task *)((char *)arg -
				     offsetof(struct ktrt_task, arg_inline));

	if (likely(!w->begun_now)) {
		queue_child(w, task);
		return;
	}
	w->begun_now = false;
	task_run_inside(w, task, func, arg);
}

int task_run_args(void *arg)
{
	const struct task_args *args = arg;

	return args->func(args->args[0], args->args[1], args->args[2],
			  args->args[3]);
}

int ktrt_dispatch(void *arg)
{
	return (*(const ktrt_func *)arg)(arg);
}

_Static_assert(sizeof(struct task_args) <= ARG_INLINE, "they fit into a task");

/*
 * Arguments are stored where the task reads them.  A copy would load by wide moves what
 * narrow ones have just stored, and would wait for these (store forwarding).
 */
static inline int spawn_args(ktrt_func_args func, void *a, void *b, void *c,
			     void *d)
{
	struct worker *w = current_worker();
	struct task_args *args;
	struct ktrt_task *task;
	bool now;

	if (unlikely(!w || !func))
		return w ? -EINVAL : -ESRCH;
	now = does_at_once(w, args_func(func));
	task = now ? task_take_blank(w) : task_new(w, task_run_args, NULL);
	if (unlikely(!task))
		return -ENOMEM;
	args = task->arg = task->arg_inline;
	*args = (struct task_args){ func, { a, b, c, d } };
	if (now)
		task_run_inside(w, task, task_run_args, args);
	else
		queue_child(w, task);
	return 0;
}

int ktrt_spawn_args(ktrt_func_args func, void *a, void *b, void *c, void *d,
		    const struct ktrt_dep *deps, size_t nr_deps)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct task_args args;

	if (!nr_deps || !func)
		return spawn_args(func, a, b, c, d);
	args = (struct task_args){ func, { a, b, c, d } };
	attr.deps = deps;
	attr.nr_deps = nr_deps;
	attr.arg_bytes = sizeof(args);
	return ktrt_spawn_attr(task_run_args, &args, &attr);
}

static inline bool is_plain_mode(unsigned mode)
{
	return mode >= KTRT_IN && mode <= KTRT_INOUT;
}

static int check_dep(const struct ktrt_dep *dep)
{
	bool valid = likely(is_plain_mode(dep->mode)) ||
		     dep->mode == KTRT_COMMUTATIVE ||
		     is_plain_mode(dep->mode ^ KTRT_WEAK);

	if (unlikely(dep->mode == KTRT_REDUCTION))
		return dep->len ? -EINVAL : reduction_check(dep->addr);
	return valid && dep->len <= UINTPTR_MAX - (uintptr_t)dep->addr
		       ? 0
		       : -EINVAL;
}

#define FLAGS_KNOWN \
	(KTRT_ALWAYS | KTRT_UNDEFERRED | KTRT_FINAL | KTRT_EARLY_RELEASE)

/* Checks all fields but the dependences. */
static bool attr_is_valid(const struct ktrt_attr *attr)
{
	if (attr->flags & ~FLAGS_KNOWN)
		return false;
	if (attr->priority > PRIORITY_MAX || attr->priority < -PRIORITY_MAX - 1)
		return false;
	if (attr->node < -1 || (attr->nr_deps && !attr->deps))
		return false;
	if (attr->move && !attr->arg_bytes)
		return false;
	for (size_t i = 0; i < sizeof(attr->reserved) / sizeof(unsigned); i++)
		if (attr->reserved[i])
			return false;
	return true;
}

static int check_attr(const struct ktrt_attr *attr)
{
	int error = attr_is_valid(attr) ? 0 : -EINVAL;

	for (size_t i = 0; i < attr->nr_deps && !error; i++)
		error = check_dep(&attr->deps[i]);
	return error;
}

int task_read_attr(struct ktrt_attr *own, const struct ktrt_attr *attr)
{
	/* The node is the last field whose default is not zero. */
	int error = struct_size_read(own, sizeof(*own), attr,
				     STRUCT_SIZE_TO(struct ktrt_attr, node));

	return error ? error : check_attr(own);
}

static void __attribute__((noinline, cold))
take_flags(struct ktrt_task *task, unsigned flags)
{
	if (flags & KTRT_UNDEFERRED)
		task->flags |= TASK_UNDEFERRED;
	if (flags & KTRT_FINAL)
		task->flags |= TASK_FINAL;
}

/* Programs name nodes by the kernel's numbers, the runtime by index. */
void task_take_attr(struct ktrt_task *task, const struct ktrt_attr *attr)
{
	if (attr->flags & KTRT_ALWAYS || attr->move)
		task->flags |= TASK_ALWAYS;
	/* The task inherited this from its parent, which runs it at once. */
	if (unlikely(task->flags & TASK_FINAL))
		task->flags |= TASK_UNDEFERRED;
	if (unlikely(attr->flags & (KTRT_UNDEFERRED | KTRT_FINAL)))
		take_flags(task, attr->flags);
	task->priority = (int16_t)attr->priority;
	if (unlikely(attr->node >= 0))
		task->node = (int16_t)cores_node(attr->node);
	if (unlikely(task->priority || task->node >= 0))
		task->flags |= TASK_NODE_QUEUE;
	at_poke(&task->group, attr->group);
}

/* The attributes are of another version: use a copy. */
__attribute__((noinline)) static int spawn_by_copy(ktrt_func func, void *arg,
						   const struct ktrt_attr *attr)
{
	struct ktrt_attr own;
	int error = task_read_attr(&own, attr);

	return error ? error : ktrt_spawn_attr(func, arg, &own);
}

static int take_arg(struct ktrt_task *task, void *arg,
		    const struct ktrt_attr *attr)
{
	int error;

	if (!attr->move)
		return arg ? copy_arg(task, arg, attr->arg_bytes) : -EINVAL;
	error = make_arg(task, attr->arg_bytes);
	if (!error)
		attr->move(task->arg, arg);
	return error;
}

/* deps_add() failed after the argument was taken: give the argument back. */
static int give_back_arg(struct ktrt_task *task, void *arg,
			 const struct ktrt_attr *attr, int error)
{
	if (error && attr->move)
		attr->move(arg, task->arg);
	return error;
}

/* 0, -EINVAL, -ENOMEM.  *@ready: it may start now. */
static inline int enter_deps(struct worker *w, struct ktrt_task *task,
			     const struct ktrt_attr *attr, bool *ready)
{
	if (unlikely(attr->flags & KTRT_EARLY_RELEASE))
		return proxies_add(w, task, attr->deps, attr->nr_deps, true,
				   ready);
	return deps_add(w, task, attr->deps, attr->nr_deps, ready);
}

/* The same while there is a trace, which must not have tasks that were refused. */
static int __attribute__((noinline, cold))
enter_traced(struct worker *w, struct ktrt_task *task,
	     const struct ktrt_attr *attr, bool *ready)
{
	uint64_t ns = now_ns();
	ktrt_func func = task->func;
	int error = enter_deps(w, task, attr, ready);

	if (!error)
		trace_made(w, task, func, attr, ns);
	return error;
}

int ktrt_spawn_attr(ktrt_func func, void *arg, const struct ktrt_attr *attr)
{
	struct worker *w = current_worker();
	struct ktrt_task *task;
	bool ready = true, undeferred;
	int error;

	if (!attr || !func)
		return -EINVAL;
	if (attr->struct_size != sizeof(*attr))
		return spawn_by_copy(func, arg, attr);
	error = check_attr(attr);
	if (error)
		return error;
	if (!w)
		return -ESRCH;
	if (attr->group && unlikely(!group_is_current(attr->group)))
		return -EINVAL;
	task = task_new(w, func, arg);
	if (!task)
		return -ENOMEM;
	task_take_attr(task, attr);
	undeferred = task->flags & TASK_UNDEFERRED;
	/* Before the task can run: deps_add() may make it ready, and it may end at once. */
	if (task->group)
		at_add(&task->group->live, 1);
	if (attr->arg_bytes)
		error = take_arg(task, arg, attr);
	if (!error && attr->nr_deps) {
		error = unlikely(rt.trace) ? enter_traced(w, task, attr, &ready)
					   : enter_deps(w, task, attr, &ready);
		error = give_back_arg(task, arg, attr, error);
	}
	if (error) {
		if (task->group)
			task_leave_group(task->group);
		task_free(w, task);
		return error;
	}
	if (unlikely(undeferred)) {
		if (!ready || turns_missing(task))
			task_await_met(w, task, ready);
		do_undeferred(w, task);
		return 0;
	}
	child_made(w, w->current);
	if (ready)
		task_ready(w, task);
	return 0;
}
