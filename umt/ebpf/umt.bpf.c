/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which monitored threads are ready, on which core.
 *
 * Owns the record of each monitored thread (task storage: it dies with the
 * thread) and writes the counts of each subscriber of the service (an array
 * that user space maps).  Does not own who is a subscriber, nor what a
 * subscriber does about an idle core.
 *
 * The record says whether the thread is counted as ready and on which core.
 * Counts change only together with it, so an event that comes twice or not at
 * all does no lasting harm:
 *
 *	the thread is		not counted		counted
 *	switched out, blocked	(repair, then uncount)	uncount
 *	switched out, else	count here (repair)	-
 *	woken			count on its core	-
 *	migrated		-			move the count
 *	switched in		count here (repair)	move here if elsewhere
 *	adding, removing itself	count here (repair)	-
 *	gone for good		-			uncount (repair)
 *
 * Counters that only add one on wake and subtract one on block would drift.  Wakeups of
 * threads that never blocked are normal, and events do get lost:
 *
 * - A program does not run inside itself.  So if an interrupt hits it and wakes a thread,
 *   that wakeup is not seen.
 * - On one machine no tracepoint fires while one certain task of that machine is current.
 *   A wakeup in a thousand was lost, and the switch from that task to the woken one.
 *
 * Until the repair, a thread that waits for a CPU, or even runs, counts as blocked.  What
 * a thread does itself is never missed.
 *
 * A thread is blocked if it was switched out, but not preempted, and its state is still
 * other than running.  The state is read from the task, not from the argument of the
 * tracepoint.  That argument moved during 5.18, and before 6.14 it was the state of a
 * moment earlier; since then a signal may have kept the thread awake.  With proxy
 * execution (6.17) a thread that waits for a mutex stays queued and lends its time to the
 * owner.  It counts as blocked, because its own work stands still.  The end of a thread
 * counts as its last block.
 *
 * Locking: the program takes no lock.  R, in shared.h, means a field of a record.
 * Switch-out and switch-in of its thread write it under the lock of the CPU's queue.  A
 * wakeup or migration of a thread that is not running holds that lock as well.  A thread
 * that adds or removes itself runs with preemption off, is counted, and stays on its core.
 * Any CPU writes the counts of a core, by atomic operations.  Increments come first, so
 * that no reader ever sees a negative number.
 *
 * Behaves badly: up to 6.1 the kernel refuses the look-up of a record while it works on
 * another record of the same CPU.  Such an event is missed and repaired later.  If the
 * last two events of a thread are missed, its subscriber's number stays in use.  A thread
 * that spins for a lock in user space, or runs in a stopped virtual CPU, counts as ready.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "list.h"
#include "reason.h"
#include "shared.h"
#include "tables.h"
#include "notify.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- counting ---- */

enum how { WOKEN, REPAIRED, MOVED };

static __always_inline void count_one(struct umt_record *record,
				      __u32 subscriber, __u32 cpu, enum how how)
{
	void *table = bpf_map_lookup_elem(&tables, &subscriber);
	struct umt_core *core;

	if (!table) {
		record->stale = 1;
		return;
	}
	core = core_of(table, cpu);
	if (!core)
		return;
	if (how == MOVED)
		__sync_fetch_and_add(&core->moved_in, 1);
	else
		__sync_fetch_and_add(&core->wakes, 1);
	if (how == REPAIRED)
		__sync_fetch_and_add(&core->repairs, 1);
	__sync_fetch_and_add(&core->ready, 1);
	ring_if_armed(core, subscriber, cpu);
}

static __always_inline void uncount_one(struct umt_record *record,
					__u32 subscriber, __u32 cpu, bool moved)
{
	void *table = bpf_map_lookup_elem(&tables, &subscriber);
	struct umt_core *core;

	if (!table) {
		record->stale = 1;
		return;
	}
	core = core_of(table, cpu);
	if (!core)
		return;
	/* Only the core itself writes its sleeps, with interrupts off. */
	if (moved)
		__sync_fetch_and_add(&core->moved_out, 1);
	else
		core->sleeps++;
	if (__sync_fetch_and_add(&core->ready, -1) == 1)
		tell_idle(core, table, subscriber, cpu);
	ring_if_armed(core, subscriber, cpu);
}

static __noinline void count_thread(struct umt_record *record, __u32 cpu,
				    enum how how)
{
	__u32 i;

	record->counted = 1;
	record->cpu = cpu;
	for (i = 0; i < UMT_MEMBERSHIPS; i++) {
		if (i >= record->nr)
			break;
		count_one(record, record->subscriber[i], cpu, how);
	}
}

static __noinline void uncount_thread(struct umt_record *record, __u32 cpu,
				      bool moved)
{
	__u32 i;

	for (i = 0; i < UMT_MEMBERSHIPS; i++) {
		if (i >= record->nr)
			break;
		uncount_one(record, record->subscriber[i], cpu, moved);
	}
}

static __noinline void move_thread(struct umt_record *record, __u32 cpu)
{
	__u32 from = record->cpu;

	count_thread(record, cpu, MOVED);
	uncount_thread(record, from, true);
	if (record->traced)
		trace_event(record, UMT_MOVE, cpu, 0, from);
}

/*
 * The thread runs on @cpu: correct the counts if an event was missed.
 * Return: true if it was counted as blocked.
 */
static __always_inline bool repair_count(struct umt_record *record, __u32 cpu)
{
	bool repaired = !record->counted;

	if (repaired)
		count_thread(record, cpu, REPAIRED);
	else if (record->cpu != cpu)
		move_thread(record, cpu);
	return repaired;
}

static __noinline void count_preempt(struct umt_record *record, __u32 cpu)
{
	__u32 i;

	for (i = 0; i < UMT_MEMBERSHIPS; i++) {
		__u32 subscriber = record->subscriber[i];
		struct umt_core *core;
		void *table;

		if (i >= record->nr)
			break;
		table = bpf_map_lookup_elem(&tables, &subscriber);
		core = table ? core_of(table, cpu) : NULL;
		if (core)
			core->preempts++;
	}
}

/* ---- memberships ---- */

static __always_inline void drop_membership(struct umt_record *record, __u32 i)
{
	__u32 k;

	if (i >= UMT_MEMBERSHIPS)
		return;
	count_threads(record->subscriber[i], -1);
	for (k = 0; k + 1 < UMT_MEMBERSHIPS; k++)
		if (k >= i)
			record->subscriber[k] = record->subscriber[k + 1];
	record->nr--;
}

/* Drops memberships in subscribers that were closed.  Called only in the thread itself. */
static __noinline void drop_stale(struct umt_record *record)
{
	__u32 i, n;

	for (n = 0; n < UMT_MEMBERSHIPS; n++) {
		i = UMT_MEMBERSHIPS - 1 - n;
		if (i < record->nr) {
			__u32 subscriber = record->subscriber[i];

			if (!bpf_map_lookup_elem(&tables, &subscriber))
				drop_membership(record, i);
		}
	}
	record->stale = 0;
}

static __noinline void discount_thread(struct umt_record *record)
{
	__u32 i;

	for (i = 0; i < UMT_MEMBERSHIPS; i++)
		if (i < record->nr)
			count_threads(record->subscriber[i], -1);
	record->nr = 0;
}

/* ---- the scheduler's events ---- */

static __always_inline void switch_out(struct task_struct *prev, bool preempt)
{
	struct umt_record *record = record_of(prev);
	__u32 cpu = bpf_get_smp_processor_id();
	unsigned int state = prev->__state;

	if (!record)
		return;
	if (repair_count(record, cpu) && record->traced)
		trace_event(record, UMT_RUN, cpu, 0, 0);
	if (preempt || !state) {
		count_preempt(record, cpu);
		if (record->traced)
			trace_event(record, UMT_PREEMPT, cpu, 0, 0);
		return;
	}
	record->counted = 0;
	uncount_thread(record, cpu, false);
	if (record->traced && state == TASK_DEAD)
		trace_event(record, UMT_GONE, cpu, 0, 0);
	else if (record->traced)
		trace_event(record, UMT_BLOCK, cpu, reason_of(prev, state),
			    syscall_of(prev));
	if (state == TASK_DEAD)
		discount_thread(record);
	else if (record->stale)
		drop_stale(record);
}

static __always_inline void switch_in(struct task_struct *next)
{
	struct umt_record *record = record_of(next);
	__u32 cpu = bpf_get_smp_processor_id();

	if (!record)
		return;
	repair_count(record, cpu);
	if (record->traced)
		trace_event(record, UMT_RUN, cpu, 0, 0);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(umt_switch, bool preempt, struct task_struct *prev,
	     struct task_struct *next)
{
	switch_out(prev, preempt);
	switch_in(next);
	return 0;
}

/*
 * The thread has ended and is about to be freed, so no other event of it follows.  If its
 * last block was missed, it is uncounted here.  Otherwise its core would never become
 * idle, and the subscriber's number would never be free again.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(umt_free, struct task_struct *task)
{
	struct umt_record *record = record_of(task);

	if (!record || !record->nr)
		return 0;
	if (record->counted) {
		record->counted = 0;
		uncount_thread(record, record->cpu, true);
	}
	if (record->traced)
		trace_event(record, UMT_GONE, record->cpu, 0, 0);
	discount_thread(record);
	return 0;
}

static __always_inline int wake_thread(struct task_struct *task)
{
	struct umt_record *record = record_of(task);
	__u32 cpu;

	if (!record || record->counted)
		return 0;
	cpu = cpu_of(task);
	count_thread(record, cpu, WOKEN);
	if (record->traced)
		trace_event(record, UMT_WAKE, cpu, 0, 0);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(umt_wakeup, struct task_struct *task)
{
	return wake_thread(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(umt_wakeup_new, struct task_struct *task)
{
	return wake_thread(task);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(umt_migrate, struct task_struct *task, int to)
{
	struct umt_record *record = record_of(task);

	if (record && record->counted && record->cpu != (__u32)to)
		move_thread(record, to);
	return 0;
}

/* ---- who is monitored ---- */

static __always_inline void add_membership(struct umt_record *record,
					   __u32 subscriber)
{
	count_threads(subscriber, 1);
	record->subscriber[record->nr++ & (UMT_MEMBERSHIPS - 1)] = subscriber;
}

/*
 * The child gets those memberships of its parent that have UMT_INHERIT.  It cannot run yet:
 * its first wakeup counts it.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(umt_fork, struct task_struct *parent, struct task_struct *child)
{
	struct umt_record *record = record_of(parent);
	struct umt_record *born = NULL;
	bool traced = false;
	__u32 level = 0;
	__u32 i;

	if (!record)
		return 0;
	for (i = 0; i < UMT_MEMBERSHIPS; i++) {
		__u32 subscriber = record->subscriber[i];

		if (i >= record->nr)
			break;
		if (!is_granted(subscriber, UMT_INHERIT))
			continue;
		if (!born)
			born = bpf_task_storage_get(
				&records, child, NULL,
				BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!born)
			return 0;
		add_membership(born, subscriber);
		if (!traced && is_granted(subscriber, UMT_TRACE)) {
			traced = true;
			level = level_of(subscriber);
		}
	}
	if (!born || !traced)
		return 0;
	set_thread_id(born, child, level);
	trace_event(born, UMT_NEW, cpu_of(child), 0, process_of(child, level));
	return 0;
}

static __always_inline bool is_member(struct umt_record *record,
				      __u32 subscriber)
{
	__u32 i;

	for (i = 0; i < UMT_MEMBERSHIPS; i++)
		if (i < record->nr && record->subscriber[i] == subscriber)
			return true;
	return false;
}

static __always_inline int add_thread(struct task_struct *task,
				      __u32 subscriber)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct umt_record fresh = { .cpu = cpu, .counted = 1 };
	struct umt_record *record;

	if (!bpf_map_lookup_elem(&tables, &subscriber))
		return -EINVAL;
	record = bpf_task_storage_get(&records, task, &fresh,
				      BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!record)
		return -EAGAIN;
	repair_count(record, cpu);
	drop_stale(record);
	if (is_member(record, subscriber))
		return -EEXIST;
	if (record->nr >= UMT_MEMBERSHIPS)
		return -EUSERS;
	count_one(record, subscriber, record->cpu, MOVED);
	add_membership(record, subscriber);
	if (!is_granted(subscriber, UMT_TRACE))
		return 0;
	if (!record->traced)
		set_thread_id(record, task, level_of(subscriber));
	trace_one(record, subscriber, UMT_NEW,
		  process_of(task, level_of(subscriber)));
	return 0;
}

/* Ends the membership @i, whose thread runs and is counted. */
static __always_inline void end_membership(struct umt_record *record, __u32 i)
{
	__u32 subscriber = record->subscriber[i & (UMT_MEMBERSHIPS - 1)];

	if (record->traced)
		trace_one(record, subscriber, UMT_GONE, 0);
	drop_membership(record, i);
	uncount_one(record, subscriber, record->cpu, true);
}

static __always_inline int remove_thread(struct task_struct *task,
					 __u32 subscriber)
{
	struct umt_record *record = record_of(task);
	__u32 i;

	if (!record || !is_member(record, subscriber))
		return -ENOENT;
	repair_count(record, bpf_get_smp_processor_id());
	for (i = 0; i < UMT_MEMBERSHIPS; i++)
		if (i < record->nr && record->subscriber[i] == subscriber) {
			end_membership(record, i);
			break;
		}
	if (!record->nr)
		bpf_task_storage_delete(&records, task);
	return 0;
}

/*
 * A thread that executes a program takes the number of its process's first thread.  The
 * last event of that thread may come later.
 */
static __noinline int rename_thread(struct umt_record *record,
				    struct task_struct *task, __u32 level)
{
	__u32 cpu = record->cpu;

	if (number_at(task, level) == record->tid)
		return 0;
	trace_event(record, UMT_GONE, cpu, 0, 0);
	set_thread_id(record, task, level);
	trace_event(record, UMT_NEW, cpu, 0, process_of(task, level));
	trace_event(record, UMT_RUN, cpu, 0, 0);
	return 0;
}

/*
 * The thread executes another program, perhaps one with more rights.  Subscribers without
 * UMT_INHERIT no longer monitor it.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(umt_exec, struct task_struct *task)
{
	struct umt_record *record = record_of(task);
	bool traced = false;
	__u32 level = 0;
	__u32 i, n;

	if (!record)
		return 0;
	repair_count(record, bpf_get_smp_processor_id());
	for (n = 0; n < UMT_MEMBERSHIPS; n++) {
		i = UMT_MEMBERSHIPS - 1 - n;
		if (i < record->nr &&
		    !is_granted(record->subscriber[i], UMT_INHERIT)) {
			end_membership(record, i);
		} else if (i < record->nr &&
			   is_granted(record->subscriber[i], UMT_TRACE)) {
			traced = true;
			level = level_of(record->subscriber[i]);
		}
	}
	if (traced)
		rename_thread(record, task, level);
	if (!record->nr)
		bpf_task_storage_delete(&records, task);
	return 0;
}

/*
 * The kernel can also run the program on another CPU, where another thread is current
 * (BPF_F_TEST_RUN_ON_CPU).  So the current thread must be in bpf(2) itself, and must have
 * the token in its memory at address @proof.
 */
static __always_inline int is_asked_by(struct task_struct *task, __u64 proof,
				       const __u64 *token)
{
	__s32 call = syscall_of(task);
	__u64 seen[2];

	if (call != __NR_bpf && call != -2)
		return -EPERM;
	/* The page may be unmapped for a moment. */
	if (bpf_probe_read_user(seen, sizeof(seen), (void *)proof))
		return -EAGAIN;
	return seen[0] == token[0] && seen[1] == token[1] ? 0 : -EPERM;
}

/* Refuses a process that does not know the token, or is not the first one that used it. */
static __always_inline int may_control(struct task_struct *task,
				       __u32 subscriber, __u64 proof,
				       __u64 token0, __u64 token1)
{
	struct umt_grant *grant = bpf_map_lookup_elem(&grants, &subscriber);
	__u64 token[2] = { token0, token1 };
	int error;

	if (!grant || grant->token[0] != token0 || grant->token[1] != token1)
		return -EPERM;
	error = is_asked_by(task, proof, token);
	if (error)
		return error;
	if (!grant->tgid &&
	    !__sync_val_compare_and_swap(&grant->tgid, 0, task->tgid))
		grant->level = BPF_CORE_READ(task, thread_pid, level);
	return grant->tgid == (__u32)task->tgid ? 0 : -EPERM;
}

/*
 * This program is never attached.  A thread runs it by BPF_PROG_TEST_RUN to add or remove
 * itself.  The kernel does that with preemption off, so no event of the thread interrupts it.
 */
SEC("raw_tp")
int umt_control(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 subscriber = ctx->args[UMT_ARG_SUBSCRIBER];
	int error = may_control(task, subscriber, ctx->args[UMT_ARG_PROOF],
				ctx->args[UMT_ARG_TOKEN],
				ctx->args[UMT_ARG_TOKEN + 1]);

	if (error)
		return error;
	if (ctx->args[UMT_ARG_OP] == UMT_OP_ADD)
		return add_thread(task, subscriber);
	return remove_thread(task, subscriber);
}
