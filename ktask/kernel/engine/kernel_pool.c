// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool of helpers, as callers see it: submitting, waiting, growing, shrinking.
 *
 * Does not know what a job is, nor what a helper does in between (kernel_helper.c).
 * One work_struct makes and ends threads, and no caller waits for it: the kernel's thread
 * that makes other threads allocates memory and may enter reclaim, which may wait for a
 * lock that the caller holds.
 *
 * Locking, for helper_pool and its nodes; nothing of the module is locked under
 * pool_lock:
 *	P: under pool_lock
 *	W: written by the work_struct, and by pool_exit() when that is cancelled;
 *	   read by any: READ_ONCE()
 *	H: written during CPU hot-plug, or under cpus_read_lock() and
 *	   kernel_param_lock(), one at a time; read by any: READ_ONCE()
 *	I: set by pool_init(), constant from when it is ready
 *	A: any thread: core/caps.h
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/workqueue.h>

#include "kernel/engine/kernel_helper.h"
#include "kernel/engine/process_helper.h"

/* A caller spins this long for a chunk to end before it lends and sleeps, */
#define WAIT_SPIN_NS 20000
/* and then checks this often whether its own priority has changed. */
#define WAIT_POLL_MS 5
/* How long a submission that found no helper waits before it is repeated. */
#define LATER_MS 20
/* Helpers that are made before any job asks for some. */
#define FIRST_HELPERS 3

static unsigned int cap_percent = 80;
static unsigned int node_cap_percent = 80;
static unsigned int idle_ms = 5000;
static unsigned int keep_helpers;

static const struct kernel_param_ops cap_ops, tend_ops;
module_param_cb(cap_percent, &cap_ops, &cap_percent, 0644);
MODULE_PARM_DESC(cap_percent, "helpers, as a part of the online CPUs");
module_param_cb(node_cap_percent, &cap_ops, &node_cap_percent, 0644);
MODULE_PARM_DESC(node_cap_percent, "helpers of a node, as a part of its CPUs");
module_param_cb(idle_ms, &tend_ops, &idle_ms, 0644);
MODULE_PARM_DESC(idle_ms, "how long an idle helper is kept, milliseconds");

module_param_cb(keep, &tend_ops, &keep_helpers, 0644);
MODULE_PARM_DESC(keep, "helpers kept although idle; 0: 3, or one per node");

struct pool_node {
	struct kt_cap cap; /* H: its limit, A: what is used */
	unsigned int missing; /* P: asked for in vain */
};

static struct {
	struct list_head idle; /* P: used last first */
	unsigned int nr; /* W */
	unsigned int generation; /* H: CPUs came or went */
	struct kt_cap machine; /* H: its limit, A: what is used */
	struct pool_node *nodes; /* I: nr_node_ids */
	struct workqueue_struct *wq; /* I */
	struct delayed_work work;
	int hotplug; /* I */
	bool ready; /* written under kernel_param_lock(); READ_ONCE() without */
	bool boots; /* written under kernel_param_lock(); READ_ONCE() without */
} helper_pool = {
	.idle = LIST_HEAD_INIT(helper_pool.idle),
};

DEFINE_SPINLOCK(pool_lock);

/* ---- caps ---- */

struct kt_cap *pool_machine(void)
{
	return &helper_pool.machine;
}

struct kt_cap *pool_node(int nid)
{
	if (nid < 0 || nid >= nr_node_ids)
		return NULL;
	return &helper_pool.nodes[nid].cap;
}

unsigned int pool_helpers(void)
{
	return READ_ONCE(helper_pool.nr);
}

bool pool_boots(void)
{
	return READ_ONCE(helper_pool.boots);
}

/* If no helper is allowed at all, none is made at boot either. */
static unsigned int part_of_cpus(unsigned int percent)
{
	return percent && pool_boots() ? 100 : percent;
}

static void count_cpus(int leaving)
{
	unsigned int nr_all = 0;
	int nid, cpu;

	for (nid = 0; nid < nr_node_ids; nid++) {
		unsigned int nr = 0;

		for_each_cpu_and(cpu, cpumask_of_node(nid), cpu_online_mask)
			nr += cpu != leaving;
		nr_all += nr;
		WRITE_ONCE(helper_pool.nodes[nid].cap.limit,
			   kt_cap_node_limit(nr, part_of_cpus(READ_ONCE(
							 node_cap_percent))));
	}
	WRITE_ONCE(helper_pool.machine.limit,
		   kt_cap_limit(nr_all, part_of_cpus(READ_ONCE(cap_percent))));
	/* If all CPUs of a thread are offline, the scheduler moves it to others. */
	WRITE_ONCE(helper_pool.generation, helper_pool.generation + 1);
	if (READ_ONCE(helper_pool.ready))
		mod_delayed_work(helper_pool.wq, &helper_pool.work, 0);
}

static int cpu_came(unsigned int cpu)
{
	count_cpus(-1);
	return 0;
}

static int cpu_goes(unsigned int cpu)
{
	count_cpus((int)cpu);
	return 0;
}

static int set_cap(const char *text, const struct kernel_param *kp)
{
	unsigned int percent;
	int error = kstrtouint(text, 0, &percent);

	if (error)
		return error;
	if (percent > 100)
		return -EINVAL;
	WRITE_ONCE(*(unsigned int *)kp->arg, percent);
	cpus_read_lock();
	if (helper_pool.ready)
		count_cpus(-1);
	cpus_read_unlock();
	return 0;
}

static const struct kernel_param_ops cap_ops = {
	.set = set_cap,
	.get = param_get_uint,
};

/* ---- growing and shrinking ---- */

/* The calling thread must be W of the legend. */
static void assert_tending(void)
{
	kt_assert(!READ_ONCE(helper_pool.ready) ||
		  current_work() == &helper_pool.work.work);
}

static void list_idle(struct helper *h)
{
	lockdep_assert_held(&pool_lock);
	kt_assert(!h->item && list_empty(&h->idle));
	h->idle_since = jiffies;
	list_add(&h->idle, &helper_pool.idle);
}

void helper_idle(struct helper *h)
{
	spin_lock(&pool_lock);
	list_idle(h);
	spin_unlock(&pool_lock);
}

static unsigned int floor_helpers(void)
{
	unsigned int floor = READ_ONCE(keep_helpers);

	/* At boot there are few jobs, which are long. */
	if (pool_boots())
		return READ_ONCE(helper_pool.machine.limit);
	if (!floor)
		floor = max_t(unsigned int, FIRST_HELPERS, num_online_nodes());

	return min(floor, READ_ONCE(helper_pool.machine.limit));
}

/* Return: false if there is no memory, or there are enough helpers. */
static bool add_helper(int nid)
{
	struct helper *h;

	assert_tending();
	if (helper_pool.nr >= READ_ONCE(helper_pool.machine.limit))
		return false;
	h = helper_make(nid);
	if (!h)
		return false;
	WRITE_ONCE(helper_pool.nr, helper_pool.nr + 1);
	helper_idle(h);
	return true;
}

static void grow_by_missing(void)
{
	int nid;

	for_each_online_node(nid)
	{
		unsigned int missing;

		spin_lock(&pool_lock);
		missing = helper_pool.nodes[nid].missing;
		helper_pool.nodes[nid].missing = 0;
		spin_unlock(&pool_lock);
		while (missing-- && add_helper(nid))
			;
	}
}

/* Make the helpers that exist before any job asks, on all nodes in turn. */
static void grow_to_floor(void)
{
	while (helper_pool.nr < floor_helpers()) {
		int nid, before = helper_pool.nr;

		for_each_node_state(nid,
				    N_CPU) if (helper_pool.nr < floor_helpers())
			add_helper(nid);
		if (helper_pool.nr == before)
			break;
	}
}

/* Take the helper that has been idle longest, if it has been since before @before. */
static struct helper *take_stale(unsigned long before)
{
	struct helper *h = NULL;

	spin_lock(&pool_lock);
	if (!list_empty(&helper_pool.idle)) {
		h = list_last_entry(&helper_pool.idle, struct helper, idle);
		if (time_before_eq(h->idle_since, before))
			list_del_init(&h->idle);
		else
			h = NULL;
	}
	spin_unlock(&pool_lock);
	return h;
}

static void shrink_to_floor(unsigned long before, unsigned int floor)
{
	assert_tending();
	while (helper_pool.nr > floor) {
		struct helper *h = take_stale(before);

		if (!h)
			break;
		helper_end(h);
		WRITE_ONCE(helper_pool.nr, helper_pool.nr - 1);
	}
}

static void tend_pool(struct work_struct *work)
{
	unsigned long stale = msecs_to_jiffies(READ_ONCE(idle_ms));

	grow_by_missing();
	grow_to_floor();
	shrink_to_floor(jiffies - stale, floor_helpers());
	if (helper_pool.nr > floor_helpers())
		queue_delayed_work(helper_pool.wq, &helper_pool.work,
				   stale / 2 + 1);
}

/* No threads are made on a node without memory or CPUs. */
static void ask_for_helper(int nid)
{
	lockdep_assert_held(&pool_lock);
	if (nid < 0 || nid >= nr_node_ids || !node_online(nid))
		nid = numa_node_id();
	if (helper_pool.nodes[nid].missing <
	    READ_ONCE(helper_pool.machine.limit))
		helper_pool.nodes[nid].missing++;
	mod_delayed_work(helper_pool.wq, &helper_pool.work, 0);
}

static int set_and_tend(const char *text, const struct kernel_param *kp)
{
	int error = param_set_uint(text, kp);

	if (!error && helper_pool.ready)
		mod_delayed_work(helper_pool.wq, &helper_pool.work, 0);
	return error;
}

static const struct kernel_param_ops tend_ops = {
	.set = set_and_tend,
	.get = param_get_uint,
};

/* ---- the caller's side ---- */

/* Find an idle helper of node @nid, or of another one if there is none. */
static struct helper *find_idle(int nid)
{
	struct helper *h;

	lockdep_assert_held(&pool_lock);
	list_for_each_entry(h, &helper_pool.idle,
			    idle) if (h->nid == nid) return h;
	return list_first_entry_or_null(&helper_pool.idle, struct helper, idle);
}

static struct helper *take_idle(int nid)
{
	struct helper *h;

	spin_lock(&pool_lock);
	h = find_idle(nid);
	if (h)
		list_del_init(&h->idle);
	if ((!h || (nid >= 0 && h->nid != nid)) &&
	    READ_ONCE(helper_pool.nr) < READ_ONCE(helper_pool.machine.limit))
		ask_for_helper(nid);
	spin_unlock(&pool_lock);
	return h;
}

static bool want_cpus(struct helper *h, const struct cpumask *node,
		      const struct cpumask *own, const struct cpumask *only)
{
	cpumask_and(h->wanted, own, cpu_online_mask);
	if (only)
		cpumask_and(h->wanted, h->wanted, only);
	if (node && cpumask_intersects(h->wanted, node))
		cpumask_and(h->wanted, h->wanted, node);
	return !cpumask_empty(h->wanted);
}

static const struct cpumask *cpus_of(int nid)
{
	return nid >= 0 && nid < nr_node_ids ? cpumask_of_node(nid) : NULL;
}

static void queue_item(struct helper *h, struct pool_item *item)
{
	helper_get(h);
	item->helper = h;
	init_completion(&item->done);
	spin_lock(&pool_lock);
	kt_assert(!h->item);
	WRITE_ONCE(item->state, POOL_ITEM_QUEUED);
	WRITE_ONCE(h->item, item);
	spin_unlock(&pool_lock);
}

bool pool_submit(struct pool_item *item, int nid, const struct cpumask *own,
		 const struct cpumask *only, int cpu)
{
	struct helper *h = take_idle(nid);

	if (!h)
		return false;
	if (!want_cpus(h, cpus_of(nid), own, only) ||
	    !helper_place(h, READ_ONCE(helper_pool.generation))) {
		helper_idle(h);
		return false;
	}
	queue_item(h, item);
	helper_wake(h, cpu);
	return true;
}

bool pool_submit_to(struct helper *h, struct pool_item *item, int nid,
		    const struct cpumask *own, const struct cpumask *only)
{
	if (!want_cpus(h, cpus_of(nid), own, only))
		return false;
	queue_item(h, item);
	process_helper_wake(h);
	return true;
}

bool pool_cancel(struct pool_item *item)
{
	struct helper *h = item->helper;
	bool queued;

	/* An item that was begun is never queued again, so no lock is needed. */
	if (READ_ONCE(item->state) != POOL_ITEM_QUEUED)
		return false;
	spin_lock(&pool_lock);
	queued = item->state == POOL_ITEM_QUEUED;
	if (queued) {
		kt_assert(h->item == item);
		WRITE_ONCE(h->item, NULL);
		WRITE_ONCE(item->state, POOL_ITEM_DONE);
		if (!h->thread)
			list_idle(h);
	}
	spin_unlock(&pool_lock);
	if (queued)
		helper_put(h);
	return queued;
}

static bool spin_for(struct pool_item *item)
{
	u64 until = ktime_get_ns() + WAIT_SPIN_NS;

	do {
		if (try_wait_for_completion(&item->done))
			return true;
		cpu_relax();
	} while (!need_resched() && ktime_get_ns() < until);
	return false;
}

static bool lend_and_wait(struct pool_item *item, bool killable)
{
	unsigned long interval = msecs_to_jiffies(WAIT_POLL_MS);
	struct prio given = { .rt = -1 };
	bool lent = false;

	/* The waiting thread's priority may change: it may be a helper itself, in a
	 * nested job, to which its own caller lends a priority. */
	do {
		lent |= helper_lend(item->helper, item, &given);
		/* The helper may wait for a page that only this process, which is killed,
		 * would have provided. */
		if (killable && fatal_signal_pending(current))
			helper_kill(item->helper, item);
	} while (!wait_for_completion_timeout(&item->done, interval));
	return lent;
}

bool pool_wait(struct pool_item *item, bool killable)
{
	bool lent = !spin_for(item) && lend_and_wait(item, killable);

	helper_put(item->helper);
	return lent;
}

void pool_later(struct delayed_work *work)
{
	queue_delayed_work(helper_pool.wq, work, msecs_to_jiffies(LATER_MS));
}

/* ---- the module ---- */

/* A cap may have been set since the CPUs were counted. */
static void begin_tending(void)
{
	kernel_param_lock(THIS_MODULE);
	cpus_read_lock();
	WRITE_ONCE(helper_pool.ready, true);
	count_cpus(-1);
	cpus_read_unlock();
	kernel_param_unlock(THIS_MODULE);
	flush_delayed_work(&helper_pool.work);
}

int pool_init(bool boots)
{
	int error;

	WRITE_ONCE(helper_pool.boots, boots);
	helper_pool.nodes =
		kcalloc(nr_node_ids, sizeof(*helper_pool.nodes), GFP_KERNEL);
	if (!helper_pool.nodes)
		return -ENOMEM;
	helper_pool.wq = alloc_workqueue("ktask", WQ_UNBOUND, 1);
	if (!helper_pool.wq) {
		error = -ENOMEM;
		goto free_nodes;
	}
	INIT_DELAYED_WORK(&helper_pool.work, tend_pool);
	error = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "ktask:online", cpu_came,
				  cpu_goes);
	if (error < 0)
		goto destroy_wq;
	helper_pool.hotplug = error;
	begin_tending();
	return 0;
destroy_wq:
	destroy_workqueue(helper_pool.wq);
free_nodes:
	kfree(helper_pool.nodes);
	return error;
}

void pool_end_boot(void)
{
	kernel_param_lock(THIS_MODULE);
	cpus_read_lock();
	WRITE_ONCE(helper_pool.boots, false);
	if (helper_pool.ready)
		count_cpus(-1);
	cpus_read_unlock();
	kernel_param_unlock(THIS_MODULE);
}

void pool_exit(void)
{
	kernel_param_lock(THIS_MODULE);
	WRITE_ONCE(helper_pool.ready, false);
	kernel_param_unlock(THIS_MODULE);
	cpuhp_remove_state_nocalls(helper_pool.hotplug);
	cancel_delayed_work_sync(&helper_pool.work);
	/* A helper that has left its last item is about to enter the idle list.  This
	 * thread must not spin: at a real-time priority it would keep the CPU from it. */
	for (shrink_to_floor(jiffies, 0); helper_pool.nr;
	     shrink_to_floor(jiffies, 0))
		schedule_timeout_uninterruptible(1);
	destroy_workqueue(helper_pool.wq);
	kfree(helper_pool.nodes);
}
