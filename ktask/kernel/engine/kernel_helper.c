// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a helper does: it waits for a work item, runs it and leaves it.  Also how its thread
 * is made, placed and raised.
 *
 * Does not know who submits (kernel/engine/kernel_pool.c) nor what a job is.  Helpers are
 * not freezable: a caller that waits for a frozen helper could not reach its own freezing
 * point, so suspend would fail.
 */
#include <linux/cpu.h>
#include <linux/kthread.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "kernel/compat.h"
#include "kernel/engine/kernel_helper.h"
#include "kernel/kernel_trace.h"

struct pool_item *helper_begin_item(struct helper *h)
{
	struct pool_item *item;

	kt_assert(h->task == current);
	spin_lock(&pool_lock);
	item = h->item;
	if (item) {
		kt_assert(item->state == POOL_ITEM_QUEUED);
		WRITE_ONCE(item->state, POOL_ITEM_RUNNING);
	}
	spin_unlock(&pool_lock);
	return item;
}

/* Return: the item, or NULL when it is time to end. */
static struct pool_item *await_item(struct helper *h)
{
	struct pool_item *item;

	for (;;) {
		set_current_state(TASK_IDLE);
		item = helper_begin_item(h);
		if (item || kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return item;
}

/*
 * The helper gives back a lent priority only after it has left the item.  If it were
 * lowered before, it might not get a CPU to say that it is done.
 */
static void give_back(struct helper *h)
{
	mutex_lock(&h->prio_lock);
	if (h->lent)
		prio_lower();
	h->lent = false;
	mutex_unlock(&h->prio_lock);
}

/* The item may be gone once the lock is dropped. */
void helper_leave_item(struct helper *h, struct pool_item *item)
{
	spin_lock(&pool_lock);
	kt_assert(h->task == current && h->item == item);
	kt_assert(item->state == POOL_ITEM_RUNNING);
	WRITE_ONCE(h->item, NULL);
	/* Release: pairs with pool_item_state(), so that what the helper wrote is seen. */
	smp_store_release(&item->state, POOL_ITEM_DONE);
	complete(&item->done);
	spin_unlock(&pool_lock);
	give_back(h);
}

static int helper_main(void *arg)
{
	struct helper *h = arg;
	struct pool_item *item;

	prio_lower();
	/* For helper_kill(); a kernel thread gets no other signals. */
	allow_kernel_signal(SIGKILL);
	while ((item = await_item(h))) {
		item->work(item);
		helper_leave_item(h, item);
		flush_signals(current);
		helper_idle(h);
	}
	return 0;
}

void helper_kill(struct helper *h, struct pool_item *item)
{
	spin_lock(&pool_lock);
	/* A process helper is killed with its process. */
	if (h->item == item && !h->thread)
		send_sig(SIGKILL, h->task, 1);
	spin_unlock(&pool_lock);
}

bool helper_lend(struct helper *h, struct pool_item *item, struct prio *given)
{
	struct prio own;
	bool lent = false;

	prio_own(&own);
	if (prio_lowest(&own) || prio_same(&own, given))
		return false;
	/* A helper that has left its item holds the lock: nothing to lend. */
	if (!mutex_trylock(&h->prio_lock))
		return false;
	/* If it leaves now, it takes the lock afterwards and lowers itself. */
	if (READ_ONCE(h->item) == item) {
		prio_lend(h->task, &own);
		trace_ktask_lend(task_pid_nr(h->task), own.rt, own.nice);
		h->lent = true;
		lent = true;
		*given = own;
	}
	mutex_unlock(&h->prio_lock);
	return lent;
}

/*
 * Fails while a CPU goes offline.  An idle helper may still be in a CPU's queue.  The
 * scheduler would move it from there at once, and kernel threads may be moved to any CPU
 * that is online, even to one that is already vacated.  The helper would stay there until
 * that CPU comes back.
 */
static bool move_task(struct helper *h)
{
	bool moved;

	if (!cpus_read_trylock())
		return false;
	/* -EINVAL: none of them is online. */
	moved = !set_cpus_allowed_ptr(h->task, h->wanted);
	cpus_read_unlock();
	return moved;
}

bool helper_place(struct helper *h, unsigned int generation)
{
	/* The helper must be off the idle list: nobody else may take it or end it. */
	kt_assert(list_empty(&h->idle));
	if (h->placed == generation && cpumask_equal(h->cpus, h->wanted))
		return true;
	if (!move_task(h))
		return false;
	cpumask_copy(h->cpus, h->wanted);
	h->placed = generation;
	return true;
}

/* The scheduler takes @cpu for the CPU that the thread ran on last, and if it idles wakes
 * the thread there.  The kernel's work queues do the same (kick_pool()). */
void helper_wake(struct helper *h, int cpu)
{
	if (cpu >= 0 && cpumask_test_cpu(cpu, h->cpus))
		compat_wake_on(h->task, cpu);
	wake_up_process(h->task);
}

/* ---- making and ending ---- */

void helper_exit(struct helper *h)
{
	free_cpumask_var(h->wanted);
	free_cpumask_var(h->cpus);
}

int helper_init(struct helper *h, int nid)
{
	if (!zalloc_cpumask_var_node(&h->cpus, GFP_KERNEL, nid))
		return -ENOMEM;
	if (!zalloc_cpumask_var_node(&h->wanted, GFP_KERNEL, nid)) {
		free_cpumask_var(h->cpus);
		return -ENOMEM;
	}
	INIT_LIST_HEAD(&h->idle);
	mutex_init(&h->prio_lock);
	h->nid = nid;
	return 0;
}

/*
 * The kernel moves unbound threads of its own: when a CPU comes online (since 6.14), when a
 * cpuset takes CPUs away, and when they first run.  A bound thread stays where it is until
 * somebody submits an item to it, which places it again.
 */
static void bind_task(struct task_struct *task, int nid)
{
	unsigned int cpu =
		cpumask_any_and(cpumask_of_node(nid), cpu_online_mask);

	kthread_bind(task, cpu < nr_cpu_ids ? cpu : raw_smp_processor_id());
}

struct helper *helper_make(int nid)
{
	struct helper *h = kzalloc_node(sizeof(*h), GFP_KERNEL, nid);
	struct task_struct *task;

	if (!h)
		return NULL;
	if (helper_init(h, nid))
		goto free;
	task = kthread_create_on_node(helper_main, h, nid, "ktask/%d", nid);
	if (IS_ERR(task))
		goto exit;
	h->task = get_task_struct(task);
	refcount_set(&h->users, 1);
	bind_task(task, nid);
	wake_up_process(task);
	return h;
exit:
	helper_exit(h);
free:
	kfree(h);
	return NULL;
}

void helper_get(struct helper *h)
{
	if (!h->thread)
		refcount_inc(&h->users);
}

void helper_put(struct helper *h)
{
	if (h->thread || !refcount_dec_and_test(&h->users))
		return;
	put_task_struct(h->task);
	helper_exit(h);
	kfree(h);
}

void helper_end(struct helper *h)
{
	kthread_stop(h->task);
	helper_put(h);
}
