/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The data of the program, and what a task, a CPU and a queue are.
 *
 * Locking: scx_shared.h says who writes each word; scx_ktask.bpf.c why that suffices.
 */
#ifndef KTASK_SCX_STATE_H
#define KTASK_SCX_STATE_H

#include "scx_kernel.h"
#include "scx_shared.h"

#define SLICE_NS 4000000ull
#define LOW_SLICE_NS 1000000ull
#define CACHES_IN_LINE 8
#define LINES (SCX_CACHES_MAX / CACHES_IN_LINE)
#define SEARCHED_LINES_MAX 4

/* Queues are numbered: those of caches, of low tasks by cache, and of CPUs. */
enum task_class { NORMAL, LOW, NR_CLASSES };
#define QUEUE_OF_CACHE(class, cache) ((__u64)(class) * SCX_CACHES_MAX + (cache))
#define QUEUE_OF_CPU(cpu) ((__u64)NR_CLASSES * SCX_CACHES_MAX + (cpu))

/* ---- written by the loader ---- */

LOADER_CONST __u32 nr_caches = 1;
/* The caches' CPUs one after the other; a cache has [first, next one's first). */
LOADER_CONST __u32 first_of_cache[SCX_CACHES_MAX + 1];
LOADER_CONST __u32 cpus_by_cache[SCX_CPUS_MAX];
LOADER_CONST __u32 cache_of_cpu[SCX_CPUS_MAX];

/* ---- read by the loader ---- */

int exit_kind;
char exit_reason[64];
char exit_message[128];

struct cpu_state cpu_states[SCX_CPUS_MAX];

struct cache_state cache_states[SCX_CACHES_MAX];

struct sparse_line overloaded[NR_CLASSES][LINES];
struct sparse_line running_low[LINES];

/* ---- what a task and a CPU are ---- */

static bool is_low(const struct task_struct *task)
{
	if (task->policy == SCHED_IDLE)
		return true;
	return task->static_prio == LOWEST_STATIC_PRIO &&
	       task->comm[0] == 'k' && task->comm[1] == 't' &&
	       task->comm[2] == 'a' && task->comm[3] == 's' &&
	       task->comm[4] == 'k';
}

static bool is_bound(const struct task_struct *task)
{
	return task->nr_cpus_allowed == 1;
}

static struct cpu_state *state_of(__s32 cpu)
{
	return &cpu_states[(__u32)cpu & (SCX_CPUS_MAX - 1)];
}

static __u32 cache_of(__s32 cpu)
{
	return cache_of_cpu[(__u32)cpu & (SCX_CPUS_MAX - 1)] &
	       (SCX_CACHES_MAX - 1);
}

/*
 * A CPU that goes offline must kick no other CPU.  A kick is queued as irq_work; once
 * the CPU has turned its interrupts off for good, that stays queued.  When the CPU is
 * back, none of its kicks gets through, and the kernel waits for them for ever when the
 * scheduler ends (Linux 7.3).
 */
static bool may_kick(void)
{
	return !state_of((__s32)bpf_get_smp_processor_id())->is_offline;
}

static void count_more(__s32 cpu, enum scx_count count, __u64 more)
{
	state_of(cpu)->counts[count] += more;
}

static void count_one(__s32 cpu, enum scx_count count)
{
	count_more(cpu, count, 1);
}

static bool may_run_on(const struct task_struct *task, __s32 cpu)
{
	return bpf_cpumask_test_cpu((__u32)cpu, task->cpus_ptr);
}

#endif /* KTASK_SCX_STATE_H */
