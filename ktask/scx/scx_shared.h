/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What scx_ktask.bpf.c and its loader both know: bounds, what is counted, and data of the
 * program, most of which only the program uses.
 */
#ifndef KTASK_SCX_SHARED_H
#define KTASK_SCX_SHARED_H

#include <linux/types.h>

/* Powers of two: the program masks its indexes by them. */
#define SCX_CPUS_MAX 1024
#define SCX_CACHES_MAX 256

/* An exit kind from here on is an error: enum scx_exit_kind, SCX_EXIT_ERROR */
#define SCX_EXIT_IS_ERROR 1024

/* What each CPU counts, and how the loader calls it. */
/* clang-format off */
#define SCX_COUNTS(count) \
	count(SENT_IDLE, "sent to an idle CPU of the cache") \
	count(SENT_AWAY, "sent to an idle CPU that the kernel found") \
	count(SENT_LOW, "sent to a CPU of a low task") \
	count(SENT_FAR_LOW, "sent to one of another cache") \
	count(QUEUED, "queued") \
	count(STOLEN, "stolen before a CPU went idle") \
	count(LOW_QUEUED, "low ones queued") \
	count(LOW_TURNS, "turns that low ones had beside others") \
	count(LOW_TURNS_US, "microseconds of these turns") \
	count(LOW_US, "microseconds that low ones ran, with these")
/* clang-format on */

enum scx_count {
#define COUNT_NAME(name, text) SCX_##name,
	SCX_COUNTS(COUNT_NAME)
#undef COUNT_NAME
		SCX_NR_COUNTS
};

#define LINE_BYTES 64

enum own_queue { SHARED, BOUND, NR_OWN_QUEUES };

/* Written by its CPU, or under the lock of its CPU's run queue. */
struct cpu_state {
	__u64 counts[SCX_NR_COUNTS]; /* any CPU that acts for it: inexact */
	__u64 began_ns; /* the running task */
	__u64 turn_ns; /* a low task's last one */
	__u64 pause_ns; /* that is wanted after it */
	__u64 bound_clock;
	__u64 served_ns[NR_OWN_QUEUES]; /* time its tasks had, by task */
	/* Where its next searches begin, each its own: two that moved one on by steps
	 * of each other's length would never see what lies between. */
	__u32 next_cpu;
	__u32 next_line;
	__u32 next_low_cpu;
	__u32 next_low_line;
	__u32 runs_low; /* and by who takes it away */
	__u32 is_counted_low; /* in nr_low of its cache */
	__u32 is_in_turn;
	__u32 is_offline;
} __attribute__((aligned(LINE_BYTES)));

/* Any CPU of the cache writes it.  An update of the time that is lost harms nothing. */
struct cache_state {
	__u64 vtime;
	__u32 nr_low; /* of its CPUs run a low task: atomic */
} __attribute__((aligned(LINE_BYTES)));

/* By any CPU: atomic. */
struct sparse_line {
	__u64 bits;
} __attribute__((aligned(LINE_BYTES)));

#endif /* KTASK_SCX_SHARED_H */
