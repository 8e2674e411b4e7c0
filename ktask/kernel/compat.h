/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place that knows kernel versions.  Each entry names the version
 * that changed the thing; ktask is built for 6.1 and later.
 */
#ifndef KTASK_KERNEL_COMPAT_H
#define KTASK_KERNEL_COMPAT_H

#include <linux/context_tracking_state.h>
#include <linux/version.h>
#ifdef CONFIG_X86
#include <asm/cpufeature.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "ktask needs Linux 6.1 or later"
#endif

/* 6.5 (ca5e863233e8) took away the array of mappings that nobody asked for. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define compat_get_user_pages_remote(mm, addr, nr, flags, pages, locked) \
	get_user_pages_remote(mm, addr, nr, flags, pages, NULL, locked)
#else
#define compat_get_user_pages_remote get_user_pages_remote
#endif

/*
 * 6.4 (e297cd54b3f8) has threads that the kernel adds to a process.  With 6.9
 * (db5247d9bf5c) it says when they are killed, and since 6.15 (cb380909ae3b) an
 * error is a pointer; the versions between are not served.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0) && \
	IS_ENABLED(CONFIG_VHOST_TASK)
#define COMPAT_PROCESS_HELPERS 1
#define COMPAT_PF_HELPER (PF_KTHREAD | PF_USER_WORKER)
#else
#define COMPAT_PROCESS_HELPERS 0
#define COMPAT_PF_HELPER PF_KTHREAD
#endif

/*
 * The policy of a thread that has none of its own and runs on that node: only a
 * kernel that has ktask built in tells (kernel/series).
 */
#if IS_ENABLED(CONFIG_KTASK) && IS_ENABLED(CONFIG_NUMA)
#include <linux/mempolicy.h>
#define compat_policy_of_node(nid) mpol_of_node(nid)
#else
#define compat_policy_of_node(nid) NULL
#endif

/*
 * The CPU time of helpers that are kernel threads is charged to the caller's group only by
 * a kernel that has ktask built in (kernel/series): what it uses is not exported.
 */
#if IS_ENABLED(CONFIG_KTASK)
#include <linux/sched/cputime.h>
#define compat_cpu_time_ns() task_sched_runtime(current)
#define compat_charge_group(task, ns) sched_charge_group(task, ns)
#else
#define compat_cpu_time_ns() ((u64)0)
#define compat_charge_group(task, ns) true
#endif

/*
 * What a CPU tells RCU, which modules may read: whether it idles.  6.12
 * (d65d411c9259) renamed its values.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define COMPAT_STATE_IDLE CONTEXT_IDLE
#else
#define COMPAT_STATE_IDLE CT_STATE_IDLE
#endif
#if IS_ENABLED(CONFIG_CONTEXT_TRACKING_IDLE)
#define COMPAT_TELLS_IDLE 1
#define compat_cpu_idles(cpu)                                        \
	((atomic_read(&per_cpu_ptr(&context_tracking, cpu)->state) & \
	  CT_STATE_MASK) == COMPAT_STATE_IDLE)
#else
#define COMPAT_TELLS_IDLE 0
#define compat_cpu_idles(cpu) true
#endif

/* Where a thread that sleeps is to be woken: a hint. */
#ifdef CONFIG_SMP
#define compat_wake_on(task, cpu) WRITE_ONCE((task)->wake_cpu, cpu)
#else
#define compat_wake_on(task, cpu) ((void)(task))
#endif

/* Does a hypervisor run this kernel?  Only x86 tells modules. */
#ifdef CONFIG_X86
#define COMPAT_IS_GUEST boot_cpu_has(X86_FEATURE_HYPERVISOR)
#else
#define COMPAT_IS_GUEST false
#endif

/* core_kernel_text() is not exported, and a module runs jobs for modules only. */
#ifdef MODULE
static inline bool compat_is_kernel_text(const void *address)
{
	return false;
}
#else
static inline bool compat_is_kernel_text(const void *address)
{
	return core_kernel_text((unsigned long)address);
}
#endif

#endif /* KTASK_KERNEL_COMPAT_H */
