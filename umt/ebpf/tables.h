/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program's maps, and how they are looked up.  Part of umt.bpf.c.
 *
 * Locking: shared.h.
 */
#ifndef UMT_TABLES_H
#define UMT_TABLES_H

#include "kernel.h"
#include "shared.h"

/* Possible CPUs; set before loading. */
const volatile __u32 nr_cores = 1;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct umt_record);
} records SEC(".maps");

/* Per subscriber: struct umt_word, then struct umt_core for each core. */
struct table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	/* A pattern: the tables that the library makes are longer. */
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct umt_core));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UMT_SUBSCRIBERS);
	__type(key, __u32);
	__array(values, struct table);
} tables SEC(".maps");

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/* Per subscriber: its events. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UMT_SUBSCRIBERS);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* Per subscriber and core, if asked for: a ring whose descriptor can be polled. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UMT_SUBSCRIBERS);
	__type(key, __u32);
	__array(values, struct ring);
} doorbells SEC(".maps");

/*
 * Threads whose record names the subscriber.  Until there is none the subscriber's number
 * must not be given to another one.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UMT_SUBSCRIBERS);
	__type(key, __u32);
	__type(value, __s64);
} thread_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UMT_SUBSCRIBERS);
	__type(key, __u32);
	__type(value, struct umt_grant);
} grants SEC(".maps");

static __always_inline bool is_granted(__u32 subscriber, __u32 flag)
{
	struct umt_grant *grant = bpf_map_lookup_elem(&grants, &subscriber);

	return grant && grant->flags & flag;
}

static __always_inline __u32 level_of(__u32 subscriber)
{
	struct umt_grant *grant = bpf_map_lookup_elem(&grants, &subscriber);

	return grant ? grant->level : 0;
}

static __always_inline void count_threads(__u32 subscriber, __s64 n)
{
	__s64 *count = bpf_map_lookup_elem(&thread_counts, &subscriber);

	if (count)
		__sync_fetch_and_add(count, n);
}

static __always_inline struct umt_core *core_of(void *table, __u32 cpu)
{
	__u32 key = cpu + 1;

	return bpf_map_lookup_elem(table, &key);
}

static __always_inline struct umt_word *word_of(void *table)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(table, &key);
}

static __always_inline __u32 cpu_of(struct task_struct *task)
{
	struct task_struct___cpu *old = (void *)task;

	if (bpf_core_field_exists(task->thread_info.cpu))
		return BPF_CORE_READ(task, thread_info.cpu);
	return BPF_CORE_READ(old, cpu);
}

/* Threads that are not monitored cost one load and one test here. */
static __always_inline struct umt_record *record_of(struct task_struct *task)
{
	if (!task->bpf_storage)
		return NULL;
	return bpf_task_storage_get(&records, task, NULL, 0);
}

#endif /* UMT_TABLES_H */
