/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler uses of the kernel: members, operations, functions, constants.
 *
 * Written by hand, so that a build needs no kernel with sched_ext.  Offsets and functions
 * are looked up in the running kernel's own type information (CO-RE) when it is loaded.
 * So are values of constants.
 */
#ifndef KTASK_SCX_KERNEL_H
#define KTASK_SCX_KERNEL_H

#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), \
			     apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct sched_ext_entity {
	__u32 flags;
	__u32 weight; /* 100 is nice 0 */
	__u64 slice;
	__u64 dsq_vtime;
};

struct task_struct {
	int static_prio;
	unsigned int policy;
	struct sched_ext_entity scx;
	const struct cpumask *cpus_ptr;
	int nr_cpus_allowed;
	char comm[16];
};

enum scx_exit_kind { SCX_EXIT_NONE };

struct scx_exit_info {
	enum scx_exit_kind kind;
	const char *reason;
	char *msg;
};

#pragma clang attribute pop

/* Members are found by their names: the others of the kernel's structure are 0. */
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *task, __s32 prev_cpu,
			    __u64 flags);
	void (*enqueue)(struct task_struct *task, __u64 flags);
	void (*dispatch)(__s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *task);
	void (*running)(struct task_struct *task);
	void (*stopping)(struct task_struct *task, bool runnable);
	void (*update_idle)(__s32 cpu, bool idle);
	void (*enable)(struct task_struct *task);
	void (*cpu_online)(__s32 cpu);
	void (*cpu_offline)(__s32 cpu);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	__u64 flags;
	char name[128];
};

/* Members of the enumerations that are used.  The values are placeholders: some moved
 * between versions. */
enum scx_dsq_id_flags { SCX_DSQ_LOCAL = 1, SCX_DSQ_LOCAL_ON };
enum scx_enq_flags { SCX_ENQ_PREEMPT = 1 };
enum scx_kick_flags { SCX_KICK_IDLE = 1, SCX_KICK_PREEMPT };
enum scx_pick_idle_cpu_flags { SCX_PICK_IDLE_CORE = 1 };
enum scx_ent_flags { SCX_TASK_QUEUED = 1 };

#define DSQ_LOCAL bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define DSQ_LOCAL_ON \
	bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)
#define ENQ_PREEMPT bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_PREEMPT)
#define KICK_IDLE bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_IDLE)
#define KICK_PREEMPT bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT)
#define PICK_IDLE_CORE \
	bpf_core_enum_value(enum scx_pick_idle_cpu_flags, SCX_PICK_IDLE_CORE)
#define TASK_QUEUED bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_QUEUED)

/* Flags of the scheduler are in a table that is not relocated: the first ones of their
 * enumeration, which have not moved. */
#define SCX_OPS_KEEP_BUILTIN_IDLE (1ull << 0)
#define SCX_OPS_ENQ_EXITING (1ull << 2)

/* What the loader writes, and the kernel may take for constants when it checks. */
#define LOADER_CONST const volatile

#define SCHED_IDLE 5
#define LOWEST_STATIC_PRIO 139 /* nice 19 */

/* Names, arguments and meaning: Documentation/scheduler/sched-ext.rst */
extern __s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node) __ksym;
extern void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice,
			       __u64 enq_flags) __ksym;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, __u64 dsq_id,
				     __u64 slice, __u64 vtime,
				     __u64 enq_flags) __ksym;
extern bool scx_bpf_dsq_move_to_local(__u64 dsq_id) __ksym;
extern __s32 scx_bpf_dsq_nr_queued(__u64 dsq_id) __ksym;
extern void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;
extern __s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
extern bool scx_bpf_task_set_slice(struct task_struct *p, __u64 slice) __ksym;
extern bool scx_bpf_task_set_dsq_vtime(struct task_struct *p,
				       __u64 vtime) __ksym;
extern __u32 scx_bpf_nr_cpu_ids(void) __ksym;
extern __u64 scx_bpf_now(void) __ksym;
extern bool scx_bpf_test_and_clear_cpu_idle(__s32 cpu) __ksym;
extern __s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed,
				   __u64 flags) __ksym;
extern const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
extern const struct cpumask *scx_bpf_get_idle_smtmask(void) __ksym;
extern void scx_bpf_put_idle_cpumask(const struct cpumask *cpumask) __ksym;
extern bool bpf_cpumask_test_cpu(__u32 cpu,
				 const struct cpumask *cpumask) __ksym;

#endif /* KTASK_SCX_KERNEL_H */
