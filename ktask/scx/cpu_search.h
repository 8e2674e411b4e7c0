/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chooses the CPU to which a task is sent.
 *
 * Locking: there is no lock.  Claiming a CPU is atomic: only one of two tasks gets it.
 */
#ifndef KTASK_SCX_CPU_SEARCH_H
#define KTASK_SCX_CPU_SEARCH_H

#include "overload_mask.h"
#include "scx_state.h"

#define SEARCHED_CPUS_MAX 8

struct found_cpus {
	__s32 core; /* idle, with its siblings */
	__s32 cpu; /* idle */
	__s32 low; /* runs a low task */
};

static void note_cpu(const struct task_struct *task, __s32 cpu,
		     const struct cpumask *idle, const struct cpumask *cores,
		     struct found_cpus *found)
{
	if (!may_run_on(task, cpu))
		return;
	if (found->core < 0 && bpf_cpumask_test_cpu((__u32)cpu, cores))
		found->core = cpu;
	if (found->cpu < 0 && bpf_cpumask_test_cpu((__u32)cpu, idle))
		found->cpu = cpu;
	if (found->low < 0 && state_of(cpu)->runs_low)
		found->low = cpu;
}

/* CPUs of @prev's cache: @prev first, then from where this CPU's last search ended. */
static void search_cache(const struct task_struct *task, __s32 prev,
			 struct found_cpus *found)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	const struct cpumask *cores = scx_bpf_get_idle_smtmask();
	__u32 cache = cache_of(prev), first = first_of_cache[cache];
	__u32 nr = first_of_cache[cache + 1] - first;
	__u32 *next = &state_of((__s32)bpf_get_smp_processor_id())->next_cpu;
	__u32 i;

	note_cpu(task, prev, idle, cores, found);
	for (i = 0; i < SEARCHED_CPUS_MAX && i < nr && found->core < 0; i++) {
		__u32 at = first + (*next + i) % nr;

		note_cpu(task, (__s32)cpus_by_cache[at & (SCX_CPUS_MAX - 1)],
			 idle, cores, found);
	}
	*next += i;
	scx_bpf_put_idle_cpumask(cores);
	scx_bpf_put_idle_cpumask(idle);
}

/* Another CPU may be faster: the bit of an idle CPU is cleared by one alone. */
static bool claim_idle(__s32 cpu)
{
	return cpu >= 0 && scx_bpf_test_and_clear_cpu_idle(cpu);
}

/* Return: a CPU that is idle and now claimed for @task, or -1 */
static __s32 claim_elsewhere(const struct task_struct *task, __s32 prev,
			     __u64 flags)
{
	__s32 cpu = scx_bpf_pick_idle_cpu(task->cpus_ptr, flags);

	if (cpu >= 0)
		count_one(prev, SCX_SENT_AWAY);
	return cpu;
}

static __s32 claim_cpu(const struct task_struct *task, __s32 prev,
		       struct found_cpus *found)
{
	__s32 cpu;

	search_cache(task, prev, found);
	cpu = claim_idle(found->core) ? found->core : -1;
	if (cpu < 0 && is_low(task)) {
		cpu = claim_elsewhere(task, prev, PICK_IDLE_CORE);
		if (cpu >= 0)
			return cpu;
	}
	if (cpu < 0 && claim_idle(found->cpu))
		cpu = found->cpu;
	if (cpu < 0)
		return claim_elsewhere(task, prev, 0);
	count_one(prev, SCX_SENT_IDLE);
	return cpu;
}

/* ---- a CPU of another cache that runs a low task ---- */

/* Return: a cache of @line, or @own if none has such a CPU */
static __u32 low_cache_in(__u32 line, __u32 own)
{
	__u64 bits = running_low[line & (LINES - 1)].bits;

	for (__u32 i = 0; i < CACHES_IN_LINE; i++) {
		__u32 cache = line * CACHES_IN_LINE + i;

		if ((bits & (1ull << i)) && cache != own)
			return cache & (SCX_CACHES_MAX - 1);
	}
	return own;
}

/* The own line, and some from where this CPU's last search ended. */
static __u32 find_low_cache(__u32 own)
{
	__u32 *next =
		&state_of((__s32)bpf_get_smp_processor_id())->next_low_line;
	__u32 lines = (nr_caches + CACHES_IN_LINE - 1) / CACHES_IN_LINE;
	__u32 cache = low_cache_in(own / CACHES_IN_LINE, own);

	for (__u32 i = 1; i < SEARCHED_LINES_MAX && i < lines && cache == own;
	     i++)
		cache = low_cache_in((*next)++ % lines, own);
	return cache;
}

/* Checks only one other cache, so that no wake-up takes long; none for a bound task. */
static __s32 find_far_low(const struct task_struct *task, __s32 prev)
{
	__u32 own = cache_of(prev), cache, first, nr, i;
	__u32 *next =
		&state_of((__s32)bpf_get_smp_processor_id())->next_low_cpu;

	if (is_low(task) || is_bound(task))
		return -1;
	cache = find_low_cache(own);
	if (cache == own)
		return -1;
	first = first_of_cache[cache];
	nr = first_of_cache[cache + 1] - first;
	for (i = 0; i < SEARCHED_CPUS_MAX && i < nr; i++) {
		__u32 at = first + (*next)++ % nr;
		__s32 cpu = (__s32)cpus_by_cache[at & (SCX_CPUS_MAX - 1)];

		if (may_run_on(task, cpu) && state_of(cpu)->runs_low)
			return cpu;
	}
	return -1;
}

/* ---- all of it ---- */

/* If two tasks want the CPU, only one of them gets it. */
static bool claim_from_low(const struct task_struct *task, __s32 cpu)
{
	return cpu >= 0 && !is_low(task) &&
	       __sync_lock_test_and_set(&state_of(cpu)->runs_low, 0);
}

static __u64 slice_of(const struct task_struct *task)
{
	return is_low(task) ? LOW_SLICE_NS : SLICE_NS;
}

/* Return: the CPU that @task is sent to, or -1.  @flags is what it is inserted with. */
static __s32 choose_cpu(const struct task_struct *task, __s32 prev,
			__u64 *flags)
{
	struct found_cpus found = { -1, -1, -1 };
	__s32 cpu = claim_cpu(task, prev, &found);

	if (cpu >= 0)
		return cpu;
	if (claim_from_low(task, found.low)) {
		count_one(prev, SCX_SENT_LOW);
	} else {
		found.low = find_far_low(task, prev);
		if (!claim_from_low(task, found.low))
			return -1;
		count_one(prev, SCX_SENT_FAR_LOW);
	}
	*flags |= ENQ_PREEMPT;
	return found.low;
}

#endif /* KTASK_SCX_CPU_SEARCH_H */
