/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the program reads of the kernel's structures, and no more.  Offsets are filled in
 * at load from the BTF of the running kernel (CO-RE).  So a build needs neither BTF nor
 * headers of any kernel.  A vmlinux.h made at build time would need a machine with BTF.
 *
 * A name that ends in three underscores and a suffix is a flavour (libbpf): the same
 * structure as other kernels have it.
 */
#ifndef UMT_KERNEL_H
#define UMT_KERNEL_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), \
			     apply_to = record)

struct bpf_local_storage;

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	/* One for each level, that of the initial namespace first. */
	struct upid numbers[1];
};

struct thread_info {
	__u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int in_iowait : 1;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid; /* NULL once it is released */
	struct bpf_local_storage *bpf_storage;
};

/* The CPU was a member of the task until 5.16 (bcf9033e5449). */
struct task_struct___cpu {
	unsigned int cpu;
};

typedef struct {
	__s64 counter;
} atomic64_t;

struct bpf_map {
	__u32 id;
	atomic64_t refcnt;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__bpf_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map; /* NULL: there are no more */
};

struct pt_regs {
	unsigned long orig_ax;
};

struct pt_regs___arm64 {
	int syscallno;
};

#pragma clang attribute pop

/* include/linux/sched.h; the same since 4.14 */
#define TASK_STOPPED_OR_TRACED (0x4 | 0x8)
#define TASK_DEAD 0x80

#endif /* UMT_KERNEL_H */
