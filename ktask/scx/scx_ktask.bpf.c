// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_ktask: a scheduler for machines where helpers work beside others.
 *
 * Owns the order in which tasks run, and which CPU a task is sent to.  Does not own what
 * the machine looks like: the loader writes that into constants.
 *
 * A task is *low* if its policy is SCHED_IDLE, or if it is one of ktask's own helpers in
 * the kernel; any other is *normal*.  There is
 *
 *	for each last-level cache	a queue of normal tasks, one of low ones
 *	for each CPU			a queue of normal tasks bound to it
 *
 * A CPU that needs a task takes the first that it finds:
 *
 *	1. from its cache's queue and its own, so that each has the share of its tasks
 *	2. from the queue of another cache (it *steals*), but only if it would idle
 *	3. a low task of its cache, then one of another cache
 *
 * Stealing must be cheap, or it cannot be tried each time that a CPU would idle.  A sparse
 * mask has a bit for each cache whose tasks wait, eight to a line of memory, so that CPUs
 * that set bits seldom write to the same line.  A thief reads the line with its own cache,
 * its neighbours, and a few more lines from where its last search ended.
 *
 * A task that wakes is sent to an idle CPU.  The search is bounded too: some CPUs of the
 * task's cache, from where the last search of this CPU ended.  Whole idle cores come
 * first; a low task prefers an idle core of another cache to half a core of its own.  If
 * nothing is found the kernel's own mask is asked for any CPU.  A normal task that finds
 * none takes at once the CPU of a low task: one that the search has met, or one of
 * another cache, of which a sparse mask tells which run low tasks.
 *
 * Normal tasks of a queue are ordered by virtual time: time run, divided by weight.  Each
 * queue has its own clock, the latest virtual time at which one of its tasks began.
 * A task that comes from another queue may have any virtual time, so that is clamped:
 * one that slept gains one slice at most, one from a faster queue waits one turn at most.
 *
 * A low task that never ran could hold what others wait for, and after 30 s the kernel
 * would remove this scheduler.  So low tasks have one short turn on each CPU in TURN_NS
 * (1.5 %, as nice 19 has beside nice 0), more often if more than 60 wait.  A turn ends with
 * a tick.  If ticks come late, as in a guest whose host is busy, the next turn is delayed
 * by the same time.  A low task that runs because no normal one waits checks at each tick
 * whether one waits by now, in any cache that a thief would search.
 *
 * The state of a task is in the kernel's own fields, so no allocation can fail.
 *
 * Locking: there is no lock.  Words below that two CPUs may write say so.
 *
 * Behaves badly: if all CPUs are busy a woken normal task waits for the end of a slice, 4
 * to 8 ms at 250 ticks a second; the kernel's own scheduler preempts at once if the running
 * task has had its share.  The same happens if another CPU runs a low task but the search
 * did not meet it, because it covers only some CPUs of two caches.  Groups' weights and
 * quotas (cpu.weight, cpu.max) are ignored.  A thief does not consider how far away another
 * cache is.
 */
#include <errno.h>
#include <linux/bpf.h>

#include <bpf/bpf_tracing.h>

#include "cpu_search.h"
#include "overload_mask.h"
#include "scx_kernel.h"
#include "scx_shared.h"
#include "scx_state.h"
#include "stealing.h"
#include "virtual_time.h"

char LICENSE[] SEC("license") = "GPL";

#define TURN_NS 256000000ull
#define TURNS_ALL_NS 15000000000ull /* in which each low task has one */
#define PAUSES_OF_TURN 64 /* one part in so many is for low tasks */
#define PAUSE_MAX_NS 2000000000ull

SEC("struct_ops/ktask_select_cpu")
__s32 BPF_PROG(ktask_select_cpu, struct task_struct *task, __s32 prev_cpu,
	       __u64 wake_flags)
{
	__u64 flags = 0;
	__s32 cpu = choose_cpu(task, prev_cpu, &flags);

	if (cpu < 0)
		return prev_cpu;
	scx_bpf_dsq_insert(task, DSQ_LOCAL, slice_of(task), flags);
	return cpu;
}

/* ---- queueing ---- */

static void enqueue_bound(struct task_struct *task, __s32 cpu, __u64 flags)
{
	struct cpu_state *state = state_of(cpu);

	if (!may_kick()) {
		scx_bpf_dsq_insert(task, DSQ_LOCAL_ON | (__u32)cpu, SLICE_NS,
				   flags);
		return;
	}
	scx_bpf_dsq_insert_vtime(task, QUEUE_OF_CPU(cpu), SLICE_NS,
				 clamped_vtime(task, state->bound_clock),
				 flags);
	scx_bpf_kick_cpu(cpu,
			 claim_from_low(task, cpu) ? KICK_PREEMPT : KICK_IDLE);
}

static void enqueue_shared(struct task_struct *task, __s32 cpu, __u64 flags)
{
	__u32 cache = cache_of(cpu);

	if (is_low(task)) {
		scx_bpf_dsq_insert(task, QUEUE_OF_CACHE(LOW, cache),
				   LOW_SLICE_NS, flags);
		mark_overloaded(LOW, cache);
		count_one(cpu, SCX_LOW_QUEUED);
		return;
	}
	scx_bpf_dsq_insert_vtime(task, QUEUE_OF_CACHE(NORMAL, cache), SLICE_NS,
				 clamped_vtime(task, cache_states[cache].vtime),
				 flags);
	mark_overloaded(NORMAL, cache);
	count_one(cpu, SCX_QUEUED);
}

SEC("struct_ops/ktask_enqueue")
void BPF_PROG(ktask_enqueue, struct task_struct *task, __u64 flags)
{
	__s32 cpu = scx_bpf_task_cpu(task), to;

	if (is_bound(task) && !is_low(task)) {
		enqueue_bound(task, cpu, flags);
		return;
	}
	/* Also for a task that wakes: a CPU may have gone idle since ktask_select_cpu(). */
	to = choose_cpu(task, cpu, &flags);
	if (to >= 0)
		scx_bpf_dsq_insert(task, DSQ_LOCAL_ON | (__u32)to,
				   slice_of(task), flags);
	else
		enqueue_shared(task, cpu, flags);
	if (is_bound(task) && may_kick())
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
}

/* ---- taking ---- */

/* The queue whose tasks have had less is served; one that was empty gains little. */
static enum own_queue own_turn(struct cpu_state *state)
{
	enum own_queue turn =
		is_before(state->served_ns[BOUND], state->served_ns[SHARED])
			? BOUND
			: SHARED;
	__u64 ahead = state->served_ns[!turn];

	if (is_before(state->served_ns[turn], ahead - SLICE_NS))
		state->served_ns[turn] = ahead - SLICE_NS;
	return turn;
}

static bool take_own(__s32 cpu, __u32 cache)
{
	__u64 queue = QUEUE_OF_CPU(cpu);

	if (!scx_bpf_dsq_nr_queued(queue))
		return take_from_cache(NORMAL, cache);
	if (own_turn(state_of(cpu)) == SHARED)
		return take_from_cache(NORMAL, cache) ||
		       scx_bpf_dsq_move_to_local(queue);
	return scx_bpf_dsq_move_to_local(queue) ||
	       take_from_cache(NORMAL, cache);
}

/* Many that wait are served more often: each must run now and then. */
static bool give_low_turn(__s32 cpu, __u32 cache)
{
	struct cpu_state *state = state_of(cpu);
	__u64 queue = QUEUE_OF_CACHE(LOW, cache);
	__u32 nr = (__u32)scx_bpf_dsq_nr_queued(queue);
	__u64 now = scx_bpf_now(), period = state->pause_ns;

	if (!nr)
		return false;
	/* unmark_if_empty() may have missed these. */
	mark_overloaded(LOW, cache);
	if (period < TURN_NS)
		period = TURN_NS;
	if (period > PAUSE_MAX_NS)
		period = PAUSE_MAX_NS;
	if (period > TURNS_ALL_NS / nr)
		period = TURNS_ALL_NS / nr;
	if (is_before(now, state->turn_ns + period) ||
	    !scx_bpf_dsq_move_to_local(queue))
		return false;
	state->turn_ns = now;
	state->is_in_turn = 1;
	count_one(cpu, SCX_LOW_TURNS);
	return true;
}

static bool keeps_running(const struct task_struct *prev)
{
	return prev && (prev->scx.flags & TASK_QUEUED);
}

SEC("struct_ops/ktask_dispatch")
void BPF_PROG(ktask_dispatch, __s32 cpu, struct task_struct *prev)
{
	__u32 cache = cache_of(cpu);

	if (give_low_turn(cpu, cache))
		return;
	if (take_own(cpu, cache)) {
		if (scx_bpf_dsq_nr_queued(QUEUE_OF_CACHE(NORMAL, cache)))
			mark_overloaded(NORMAL, cache);
		return;
	}
	if (keeps_running(prev) && !is_low(prev))
		return;
	if (steal_task(NORMAL, cpu, cache)) {
		count_one(cpu, SCX_STOLEN);
		return;
	}
	if (take_from_cache(LOW, cache))
		return;
	if (!keeps_running(prev)) {
		steal_task(LOW, cpu, cache);
		return;
	}
	/* The kernel would give it 20 ms, in which this CPU would not steal. */
	scx_bpf_task_set_slice(prev, LOW_SLICE_NS);
	state_of(cpu)->is_in_turn = 0;
}

/* ---- running ---- */

static void begin_low(struct cpu_state *state, __s32 cpu)
{
	state->turn_ns = state->began_ns;
	state->runs_low = 1;
	/* The task counts as low until it ends here, even if its policy changes. */
	state->is_counted_low = 1;
	note_low_begins(cache_of(cpu));
}

static void end_low(struct cpu_state *state, __s32 cpu, __u64 ns)
{
	state->runs_low = 0;
	state->is_counted_low = 0;
	note_low_ends(cache_of(cpu));
	count_more(cpu, SCX_LOW_US, ns / 1000);
	state->pause_ns = state->is_in_turn ? ns * PAUSES_OF_TURN : 0;
	if (state->is_in_turn)
		count_more(cpu, SCX_LOW_TURNS_US, ns / 1000);
	state->is_in_turn = 0;
}

SEC("struct_ops/ktask_running")
void BPF_PROG(ktask_running, struct task_struct *task)
{
	__s32 cpu = scx_bpf_task_cpu(task);
	struct cpu_state *state = state_of(cpu);
	__u64 *clock = clock_of(task, cpu);
	__u64 vtime;

	state->began_ns = scx_bpf_now();
	if (is_low(task)) {
		begin_low(state, cpu);
		return;
	}
	vtime = clamped_vtime(task, *clock);
	scx_bpf_task_set_dsq_vtime(task, vtime);
	if (is_before(*clock, vtime))
		*clock = vtime;
}

/* What @ns of its own queue or its cache's are for each task there. */
static void charge_queue(struct cpu_state *state,
			 const struct task_struct *task, __s32 cpu, __u64 ns)
{
	__u32 cache = cache_of(cpu);
	__u32 nr_cpus = first_of_cache[cache + 1] - first_of_cache[cache];

	if (is_bound(task))
		state->served_ns[BOUND] +=
			ns /
			(1 + (__u32)scx_bpf_dsq_nr_queued(QUEUE_OF_CPU(cpu)));
	else
		state->served_ns[SHARED] +=
			ns * nr_cpus /
			(nr_cpus + (__u32)scx_bpf_dsq_nr_queued(
					   QUEUE_OF_CACHE(NORMAL, cache)));
}

SEC("struct_ops/ktask_stopping")
void BPF_PROG(ktask_stopping, struct task_struct *task, bool runnable)
{
	__s32 cpu = scx_bpf_task_cpu(task);
	struct cpu_state *state = state_of(cpu);
	__u64 ns = scx_bpf_now() - state->began_ns;

	if (state->is_counted_low) {
		end_low(state, cpu, ns);
		return;
	}
	scx_bpf_task_set_dsq_vtime(task,
				   task->scx.dsq_vtime + by_weight(task, ns));
	charge_queue(state, task, cpu, ns);
}

/* The kernel gives a task that is alone a longer slice: until somebody waits. */
SEC("struct_ops/ktask_tick")
void BPF_PROG(ktask_tick, struct task_struct *task)
{
	__s32 cpu = scx_bpf_task_cpu(task);
	__u64 ran_ns = scx_bpf_now() - state_of(cpu)->began_ns;

	if (!scx_bpf_dsq_nr_queued(QUEUE_OF_CACHE(NORMAL, cache_of(cpu))) &&
	    !scx_bpf_dsq_nr_queued(QUEUE_OF_CPU(cpu)))
		return;
	if (is_low(task) || ran_ns >= SLICE_NS)
		scx_bpf_task_set_slice(task, 0);
}

/* A task queued after this CPU looked its last is seen here.  One that is inserted later
 * still waits for its own CPU. */
SEC("struct_ops/ktask_update_idle")
void BPF_PROG(ktask_update_idle, __s32 cpu, bool idle)
{
	__u32 cache = cache_of(cpu);

	if (idle && may_kick() &&
	    (scx_bpf_dsq_nr_queued(QUEUE_OF_CACHE(NORMAL, cache)) ||
	     scx_bpf_dsq_nr_queued(QUEUE_OF_CACHE(LOW, cache)) ||
	     scx_bpf_dsq_nr_queued(QUEUE_OF_CPU(cpu))))
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
}

SEC("struct_ops/ktask_enable")
void BPF_PROG(ktask_enable, struct task_struct *task)
{
	scx_bpf_task_set_dsq_vtime(task,
				   *clock_of(task, scx_bpf_task_cpu(task)));
}

/* ---- the life of the scheduler ---- */

/* The kernel ends a scheduler that does not say that it knows of these. */
SEC("struct_ops/ktask_cpu_online")
void BPF_PROG(ktask_cpu_online, __s32 cpu)
{
	state_of(cpu)->is_offline = 0;
}

SEC("struct_ops/ktask_cpu_offline")
void BPF_PROG(ktask_cpu_offline, __s32 cpu)
{
	state_of(cpu)->is_offline = 1;
	state_of(cpu)->runs_low = 0;
}

SEC("struct_ops/ktask_init")
__s32 BPF_PROG(ktask_init)
{
	__u32 nr_cpus = scx_bpf_nr_cpu_ids();
	/* Makes the compiler describe the whole type, which libbpf compares. */
	__s32 error = bpf_core_type_exists(struct cpumask) ? 0 : -ENOENT;
	__u32 i;

	for (i = 0; i < SCX_CACHES_MAX && i < nr_caches && !error; i++) {
		error = scx_bpf_create_dsq(QUEUE_OF_CACHE(NORMAL, i), -1);
		if (!error)
			error = scx_bpf_create_dsq(QUEUE_OF_CACHE(LOW, i), -1);
	}
	for (i = 0; i < SCX_CPUS_MAX && i < nr_cpus && !error; i++)
		error = scx_bpf_create_dsq(QUEUE_OF_CPU(i), -1);
	return error;
}

SEC("struct_ops/ktask_exit")
void BPF_PROG(ktask_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exit_reason, sizeof(exit_reason),
				  info->reason);
	bpf_probe_read_kernel_str(exit_message, sizeof(exit_message),
				  info->msg);
	exit_kind = info->kind;
}

SEC(".struct_ops")
struct sched_ext_ops ktask_sched = {
	.select_cpu = (void *)ktask_select_cpu,
	.enqueue = (void *)ktask_enqueue,
	.dispatch = (void *)ktask_dispatch,
	.tick = (void *)ktask_tick,
	.running = (void *)ktask_running,
	.stopping = (void *)ktask_stopping,
	.update_idle = (void *)ktask_update_idle,
	.enable = (void *)ktask_enable,
	.cpu_online = (void *)ktask_cpu_online,
	.cpu_offline = (void *)ktask_cpu_offline,
	.init = (void *)ktask_init,
	.exit = (void *)ktask_exit,
	.flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_EXITING,
	.name = "ktask",
};
