// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inherit: a helper's address space, rights, memory nodes, memory policy, memory
 * group and allocation scope, for as long as it is in a job.
 *
 * Owns what is set in the helper's task and taken back.  A process helper
 * (kernel/engine/process_helper.c) needs the scope only: it has the rest by itself.
 */
#include <linux/cpuset.h>
#include <linux/cred.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

#include "kernel/compat.h"
#include "kernel/engine/inherit.h"
#include "kernel/engine/kernel_job.h"

/*
 * A kernel thread that works for a process uses that process's address space, memory nodes
 * and memory policy.  The caller keeps the policy as long as its job has helpers.  If the
 * machine's memory nodes change meanwhile, the kernel adapts the shared policy twice.
 */
static void borrow_nodes(struct task_struct *task)
{
#ifdef CONFIG_CPUSETS
	nodemask_t nodes;

	task_lock(task);
	nodes = task->mems_allowed;
	task_unlock(task);
	set_mems_allowed(nodes);
#endif
}

static void return_nodes(void)
{
	set_mems_allowed(node_states[N_MEMORY]);
}

#ifdef CONFIG_NUMA
static void set_policy(struct mempolicy *policy)
{
	task_lock(current);
	current->mempolicy = policy;
	task_unlock(current);
}

/* A caller without a policy of its own gets memory from the node that it runs on. */
static void borrow_policy(const struct kernel_job *job)
{
	set_policy(job->task->mempolicy
			   ?: compat_policy_of_node(job->ctx.caller.node));
}

static void return_policy(void)
{
	set_policy(NULL);
}
#else
static void borrow_policy(const struct kernel_job *job)
{
}

static void return_policy(void)
{
}
#endif

/* Pages are charged to the group that owns the address space.  What the kernel allocates
 * for them, mostly page tables, is charged to it only if the kernel thread names the group. */
static void charge_caller(const struct kernel_job *job)
{
	set_active_memcg(get_mem_cgroup_from_mm(job->mm));
}

static void charge_nobody(void)
{
	mem_cgroup_put(set_active_memcg(NULL));
}

/* A fault may allocate blocks of a file.  Disk quotas and reserved blocks depend on the
 * rights of the thread, and a kernel thread has root's. */
static void become_caller(const struct kernel_job *job)
{
	if (job->mm) {
		kthread_use_mm(job->mm);
		charge_caller(job);
		override_creds(job->cred);
	}
	if (job->ctl->flags & (KTASK_CALLER_MM | KTASK_CALLER_PROCESS)) {
		borrow_nodes(job->task);
		borrow_policy(job);
	}
}

static void become_oneself(const struct kernel_job *job)
{
	if (job->ctl->flags & (KTASK_CALLER_MM | KTASK_CALLER_PROCESS)) {
		return_policy();
		return_nodes();
	}
	if (job->mm) {
		revert_creds(current_real_cred());
		charge_nobody();
		kthread_unuse_mm(job->mm);
	}
}

/* If the caller's allocations must not wait for something, because of locks that it holds,
 * those of its helpers must not either, because the caller waits for them. */
static unsigned int enter_scope(const struct kernel_job *job)
{
	unsigned int added = READ_ONCE(job->scope) & ~current->flags;

	current->flags |= added;
	return added;
}

static void leave_scope(unsigned int added)
{
	current->flags &= ~added;
}

unsigned int inherit_from_caller(const struct kernel_job *job)
{
	if (current->flags & PF_KTHREAD)
		become_caller(job);
	return enter_scope(job);
}

void inherit_no_more(const struct kernel_job *job, unsigned int scope)
{
	leave_scope(scope);
	if (current->flags & PF_KTHREAD)
		become_oneself(job);
}
