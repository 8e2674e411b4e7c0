/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the program notifies user space: by descriptors of cores, by events of idle cores,
 * by traces.  Part of umt.bpf.c.
 *
 * Locking: shared.h.
 */
#ifndef UMT_NOTIFY_H
#define UMT_NOTIFY_H

#include "tables.h"

/*
 * Makes the core's descriptor readable, once for each time that it was armed.  Pairs with
 * the reader, which arms it before reading the counts: either the reader sees our count,
 * or we see that it is armed and ring again.
 */
static __noinline int ring_doorbell(struct umt_core *core, __u32 subscriber,
				    __u32 cpu)
{
	__u32 key = subscriber * nr_cores + cpu;
	__u64 nothing = 0;
	void *doorbell;

	core->reserved[UMT_CORE_ARMED] = 0;
	doorbell = bpf_map_lookup_elem(&doorbells, &key);
	if (!doorbell || bpf_ringbuf_output(doorbell, &nothing, sizeof(nothing),
					    BPF_RB_FORCE_WAKEUP))
		core->reserved[UMT_CORE_ARMED] = 1;
	return 0;
}

static __always_inline void ring_if_armed(struct umt_core *core,
					  __u32 subscriber, __u32 cpu)
{
	if (core->reserved[UMT_CORE_ARMED])
		ring_doorbell(core, subscriber, cpu);
}

/* The last ready thread of a core has blocked or left.  There is no second event of that
 * core until the reader has read this one. */
static __always_inline void tell_idle(struct umt_core *core, void *table,
				      __u32 subscriber, __u32 cpu)
{
	struct umt_event event = { .kind = UMT_IDLE, .cpu = cpu };
	struct umt_word *word = word_of(table);
	void *ring;

	if (!word || !word->wanted || core->reserved[UMT_CORE_TOLD])
		return;
	core->reserved[UMT_CORE_TOLD] = 1;
	ring = bpf_map_lookup_elem(&rings, &subscriber);
	if (ring && !bpf_ringbuf_output(ring, &event, sizeof(event),
					BPF_RB_FORCE_WAKEUP))
		return;
	core->reserved[UMT_CORE_TOLD] = 0;
	__sync_fetch_and_add(&core->lost, 1);
}

/* Events come in thousands, so the reader is not woken for each. */
static __always_inline void trace_to(__u32 subscriber, struct umt_event *event)
{
	void *table = bpf_map_lookup_elem(&tables, &subscriber);
	void *ring = bpf_map_lookup_elem(&rings, &subscriber);
	struct umt_word *word;
	struct umt_core *core;
	__u64 flags;

	if (!table || !ring)
		return;
	word = word_of(table);
	core = core_of(table, event->cpu);
	if (!word || !core || !is_granted(subscriber, UMT_TRACE))
		return;
	flags = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >= word->wake_bytes
			? BPF_RB_FORCE_WAKEUP
			: BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_output(ring, event, sizeof(*event), flags))
		__sync_fetch_and_add(&core->lost, 1);
}

/* The thread's number in its PID namespace of that level. */
static __noinline __u32 number_at(struct task_struct *task, __u32 level)
{
	/* Not read plainly: the verifier wants one kind of memory for each load,
	 * and the compiler makes one load of this and that below. */
	int number = BPF_CORE_READ(task, pid);
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	int there;
	void *at;

	if (!level || !pid || BPF_CORE_READ(pid, level) < level)
		return number;
	at = (void *)pid + bpf_core_field_offset(pid->numbers) +
	     (__u64)level * bpf_core_type_size(struct upid);
	if (bpf_probe_read_kernel(&there, sizeof(there), at))
		return number;
	return there;
}

/* @what: the kind, and above it the reason. */
static __always_inline struct umt_event
event_of(struct umt_record *record, __u32 what, __u32 cpu, __s32 detail)
{
	struct umt_event event = {
		.time_ns = bpf_ktime_get_ns(),
		.tid = record->tid,
		.detail = detail,
		.cpu = cpu,
		.kind = what & 0xff,
		.reason = what >> 8,
	};

	return event;
}

static __noinline void trace_all(struct umt_record *record, __u32 what,
				 __u32 cpu, __s32 detail)
{
	struct umt_event event = event_of(record, what, cpu, detail);
	__u32 i;

	for (i = 0; i < UMT_MEMBERSHIPS; i++)
		if (i < record->nr)
			trace_to(record->subscriber[i], &event);
}

/* An event for one of the subscribers of a thread. */
static __noinline void trace_one(struct umt_record *record, __u32 subscriber,
				 __u32 what, __s32 detail)
{
	struct umt_event event = event_of(record, what, record->cpu, detail);

	trace_to(subscriber, &event);
}

/* Callers check first whether the thread is traced, so others do not pay for it. */
static __always_inline void trace_event(struct umt_record *record, __u8 kind,
					__u32 cpu, __u8 reason, __s32 detail)
{
	trace_all(record, kind | reason << 8, cpu, detail);
}

/*
 * The record keeps the thread's number, because the thread no longer has one when it is
 * freed.
 *
 * Behaves badly: of several that trace a thread from different PID namespaces
 * only the first has its own numbers.
 */
static __always_inline void set_thread_id(struct umt_record *record,
					  struct task_struct *task, __u32 level)
{
	record->tid = number_at(task, level);
	record->traced = 1;
}

static __always_inline __s32 process_of(struct task_struct *task, __u32 level)
{
	return level ? number_at(task->group_leader, level) : task->tgid;
}

#endif /* UMT_NOTIFY_H */
