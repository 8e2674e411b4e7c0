// SPDX-License-Identifier: GPL-2.0-only
/*
 * Process helpers: threads of the caller's process, made as vhost makes its tasks.  A
 * job that may have them has one for each work item.  It is made when the item is first
 * submitted, and ends with the job.
 *
 * The caller waits until they are gone.  Otherwise a program that counts its threads or
 * calls unshare() would find threads that it did not make.
 *
 * A process helper that is killed takes no more items.  The caller, which is killed as
 * well, cancels the item that was submitted to it.
 *
 * Locking: there is no lock.  kernel/engine/kernel_helper.h says who writes struct helper.
 * The other fields:
 *	O: its own thread
 *	C: the caller, before the end is queued; the thread reads leave: READ_ONCE()
 *	R: a reference counter; the completions are their own
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "kernel/compat.h"
#include "kernel/engine/kernel_helper.h"
#include "kernel/engine/process_helper.h"

#if COMPAT_PROCESS_HELPERS
#include <linux/sched/vhost_task.h>

/* Intervals of polling whether a thread that ended is gone. */
#define GONE_FIRST_US 10
#define GONE_LAST_US 10000
/* A thread waits for vhost_task_stop() by checking at least this often. */
#define AWAIT_STOP (HZ / 10)

/* Ends them: see process_helper_end(). */
static struct workqueue_struct *end_wq;

struct process_helper {
	struct helper helper;
	bool lowered; /* O: it has had an item */
	bool leave; /* C: it shall take no more items */
	struct completion begun; /* it has set ->helper.task, */
	struct completion left; /* and will take no more items */
	struct prio own; /* C: of the caller, which waits for its end */
	struct work_struct end;
	struct completion ended;
	refcount_t users; /* R: the job, and the work_struct */
};

static struct process_helper *process_helper_of(struct helper *h)
{
	return container_of(h, struct process_helper, helper);
}

/* Called first in each thread, also in one that ends without having had an item. */
static void begin_thread(struct process_helper *w)
{
	if (w->helper.task)
		return;
	/* Seen by whoever lends: an item is taken after this, under a lock. */
	w->helper.task = get_task_struct(current);
	complete(&w->begun);
}

static void lower_thread(struct process_helper *w)
{
	if (!w->lowered)
		prio_lower();
	w->lowered = true;
}

static void place_thread(struct helper *h)
{
	if (cpumask_equal(h->cpus, h->wanted))
		return;
	/* Where none of them is online any more it stays in the caller's. */
	set_cpus_allowed_ptr(current, h->wanted);
	cpumask_copy(h->cpus, h->wanted);
}

/*
 * vhost_task_stop() waits until the helper has ended.  If the process is stopped (SIGSTOP),
 * a helper ends only when the process continues, and the kernel would report a thread that
 * waits for minutes as hung.  So vhost_task_stop() is called only when the helper is here,
 * where it does not check for signals.  Once it is woken by vhost_task_stop() it ends before
 * it checks for them again.
 */
static void await_stop(struct process_helper *w)
{
	set_current_state(TASK_IDLE);
	complete(&w->left);
	schedule_timeout(AWAIT_STOP);
	clear_thread_flag(TIF_SIGPENDING);
}

/* vhost calls it in a loop, in state TASK_INTERRUPTIBLE.  Return: false if there is nothing
 * to do. */
static bool run_thread(void *arg)
{
	struct helper *h = arg;
	struct pool_item *item;

	begin_thread(process_helper_of(h));
	if (READ_ONCE(process_helper_of(h)->leave)) {
		await_stop(process_helper_of(h));
		return true;
	}
	if (!READ_ONCE(h->item))
		return false;
	__set_current_state(TASK_RUNNING);
	lower_thread(process_helper_of(h));
	item = helper_begin_item(h);
	if (item) {
		place_thread(h);
		item->work(item);
		helper_leave_item(h, item);
	}
	return true;
}

/* vhost calls it in place of run_thread() once the thread was killed. */
static void thread_killed(void *arg)
{
	begin_thread(process_helper_of(arg));
	complete(&process_helper_of(arg)->left);
}

void process_helper_wake(struct helper *h)
{
	vhost_task_wake(h->thread);
}

static void put_process_helper(struct process_helper *w)
{
	if (!refcount_dec_and_test(&w->users))
		return;
	if (w->helper.task)
		put_task_struct(w->helper.task);
	helper_exit(&w->helper);
	kfree(w);
}

/*
 * vhost_task_stop() returns before the thread has exited.  The kernel clears ->sighand of a
 * thread once it no longer belongs to a process.  A traced thread may exist until
 * its tracer reaps it, so it is not waited for.
 */
static void wait_until_gone(const struct task_struct *task)
{
	unsigned int us = GONE_FIRST_US;

	while (rcu_access_pointer(task->sighand) && !READ_ONCE(task->ptrace)) {
		usleep_range(us, 2 * us);
		us = min(2 * us, (unsigned int)GONE_LAST_US);
	}
}

static void stop_thread(struct work_struct *work)
{
	struct process_helper *w =
		container_of(work, struct process_helper, end);

	wait_for_completion_state(&w->begun, TASK_IDLE);
	if (!prio_lowest(&w->own))
		prio_lend(w->helper.task, &w->own);
	wait_for_completion_state(&w->left, TASK_IDLE);
	vhost_task_stop(w->helper.thread);
	wait_until_gone(w->helper.task);
	complete(&w->ended);
	put_process_helper(w);
}

struct helper *process_helper_make(int nid)
{
	struct vhost_task *task;
	struct process_helper *w;

	if (current->flags & (PF_KTHREAD | PF_USER_WORKER | PF_EXITING))
		return NULL;
	w = kzalloc_node(sizeof(*w), GFP_KERNEL, nid);
	if (!w)
		return NULL;
	if (helper_init(&w->helper, nid))
		goto free;
	INIT_WORK(&w->end, stop_thread);
	init_completion(&w->begun);
	init_completion(&w->left);
	init_completion(&w->ended);
	refcount_set(&w->users, 2);
	task = vhost_task_create(run_thread, thread_killed, &w->helper,
				 "ktask");
	if (IS_ERR_OR_NULL(task))
		goto exit;
	w->helper.thread = task;
	vhost_task_start(task);
	return &w->helper;
exit:
	helper_exit(&w->helper);
free:
	kfree(w);
	return NULL;
}

/* The end is queued at the caller's priority, because the caller waits for it. */
void process_helper_end(struct helper *h)
{
	struct process_helper *w = process_helper_of(h);

	prio_own(&w->own);
	WRITE_ONCE(w->leave, true);
	process_helper_wake(h);
	queue_work(end_wq, &w->end);
}

void process_helper_wait(struct helper *h)
{
	struct process_helper *w = process_helper_of(h);

	/* If a signal comes, the work_struct does the rest without the caller. */
	wait_for_completion_interruptible(&w->ended);
	put_process_helper(w);
}

int process_helpers_init(void)
{
	end_wq = alloc_workqueue("ktask_end", WQ_UNBOUND, 0);
	return end_wq ? 0 : -ENOMEM;
}

void process_helpers_exit(void)
{
	destroy_workqueue(end_wq);
}
#else
int process_helpers_init(void)
{
	return 0;
}

void process_helpers_exit(void)
{
}

struct helper *process_helper_make(int nid)
{
	return NULL;
}

void process_helper_wake(struct helper *h)
{
}

void process_helper_end(struct helper *h)
{
}

void process_helper_wait(struct helper *h)
{
}
#endif
