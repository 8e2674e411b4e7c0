/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A machine for the searches of scx_ktask, whose own source is compiled for the test: what
 * ktask/scx/scx_kernel.h declares of the kernel stands here in a few lines, so this is to
 * be included before anything of ktask/scx.
 *
 * Owns the idle CPUs, how many tasks wait in each queue, and counts of what was looked at.
 * One thread: nothing here is atomic.
 */
#ifndef SCX_MACHINE_H
#define SCX_MACHINE_H

/* Instead of it. */
#define KTASK_SCX_KERNEL_H

#include <linux/types.h>
#include <stdbool.h>
#include <string.h>

#define LOADER_CONST
#define SCHED_IDLE 5
#define LOWEST_STATIC_PRIO 139
#define ENQ_PREEMPT 1ull
#define PICK_IDLE_CORE 1
#define MACHINE_CPUS_MAX 1024
#define MACHINE_QUEUES_MAX 2048

struct cpumask {
	bool has[MACHINE_CPUS_MAX];
};

struct task_struct {
	int static_prio;
	unsigned int policy;
	const struct cpumask *cpus_ptr;
	int nr_cpus_allowed;
	char comm[16];
};

static struct {
	unsigned cpu; /* that acts */
	struct cpumask all, idle;
	unsigned waiting[MACHINE_QUEUES_MAX];
	unsigned nr_cpus_asked, nr_queues_asked;
} made_machine;

static bool bpf_cpumask_test_cpu(__u32 cpu, const struct cpumask *mask)
{
	made_machine.nr_cpus_asked += mask == &made_machine.all;
	return mask->has[cpu];
}

static const struct cpumask *scx_bpf_get_idle_cpumask(void)
{
	return &made_machine.idle;
}

static const struct cpumask *scx_bpf_get_idle_smtmask(void)
{
	return &made_machine.idle;
}

static void scx_bpf_put_idle_cpumask(const struct cpumask *mask)
{
}

static bool scx_bpf_test_and_clear_cpu_idle(__s32 cpu)
{
	bool was_idle = made_machine.idle.has[cpu];

	made_machine.idle.has[cpu] = false;
	return was_idle;
}

/* The kernel's own search of all CPUs finds nothing here. */
static __s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags)
{
	return -1;
}

static __u32 bpf_get_smp_processor_id(void)
{
	return made_machine.cpu;
}

static __s32 scx_bpf_dsq_nr_queued(__u64 queue)
{
	return (__s32)made_machine.waiting[queue];
}

static bool scx_bpf_dsq_move_to_local(__u64 queue)
{
	made_machine.nr_queues_asked++;
	if (!made_machine.waiting[queue])
		return false;
	made_machine.waiting[queue]--;
	return true;
}

#endif /* SCX_MACHINE_H */
