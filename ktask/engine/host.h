/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All that engine/ needs from its host, besides what core/ needs.
 *
 * The engine drives a job from its first submitted helper to its result.  The host
 * knows how a helper gets a thread, how a thread sleeps, and who else uses the machine.
 * It fills in one struct kt_host_ops, named kt_host, and links with the engine.  Hosts
 * are the library (user/), the kernel module (kernel/) and the simulation (sim/).
 *
 * A host also puts one ktask_host.h on the include path.  It defines
 *
 *	struct kt_host_item	what the host keeps for each work item
 *	kt_cpu_time_ns()	optional: CPU time that the calling thread has used;
 *				read by the caller and the helpers if the job has
 *				ctx->measure_cpu
 *	KT_HOST_BOUND		optional, for hosts in which calls through pointers are
 *				expensive: the host then defines kt_host in
 *				ktask_ops.h, as a static constant, and the compiler
 *				makes direct calls
 *
 * The other clock is kt_now_ns() of core/deps.h.  The trace of chunks is there too.
 *
 * Glossary
 *	work item	what one helper is submitted for, in one job; struct kt_item
 *	submit		hand a work item to a helper that idles
 *	cancel		take back an item that no helper has begun
 *	permit		the right to run one helper; a machine, a node and a user have
 *			a limited number of permits
 *	detached	started, and nobody waits for it yet
 */
#ifndef KTASK_ENGINE_HOST_H
#define KTASK_ENGINE_HOST_H

#include "core/deps.h"
#include "ktask_host.h"

#ifndef kt_cpu_time_ns
#define kt_cpu_time_ns() ((uint64_t)0)
#endif

struct kt_context;
struct kt_item;

enum kt_item_state {
	KT_ITEM_DONE, /* left, cancelled, or never submitted */
	KT_ITEM_QUEUED, /* no helper has begun it */
	KT_ITEM_RUNNING, /* a helper has begun and not left */
};

/* The stages of a job, in this order, for kt_host_ops.notify. */
enum kt_stage {
	KT_STAGE_BEGUN, /* times and threads are known, no helper is there */
	KT_STAGE_ADJUSTED, /* at the end of each refresh */
	KT_STAGE_DRAINING, /* all queued items are cancelled */
	KT_STAGE_DRAINED, /* no helper is in the job any more */
	KT_STAGE_ENDED, /* undone if it failed; the counts are final */
};

/**
 * struct kt_host_ops - what a host does for the engine
 *
 * The caller of a job is the thread that runs kt_context_work() and
 * kt_context_end().  A detached job has none until somebody waits for it.  Where an
 * entry is called "by the caller", it is called for a detached job by the thread that
 * stands in for it, one at a time.
 *
 * Entries are called by threads, never by an interrupt or a signal handler.  No lock of
 * the engine is held, because it has none.  An entry may take locks of the host and
 * allocate.  Only @wait may wait for a helper.
 */
struct kt_host_ops {
	/**
	 * @submit: hand @item to a helper
	 *
	 * By the caller, or by the manager of compensating helpers, once the
	 * item's permit is held and its worker is initialised.  Must not wait
	 * for a thread.  The helper calls kt_item_work() and, when that has
	 * returned, kt_item_release(); after that it must not touch the item.
	 * The host may replace item->worker.tick by a function that ends with
	 * kt_item_tick().
	 *
	 * Return: false if no helper idles.  No helper touches the item then, and
	 * the engine gives its permit back.
	 */
	bool (*submit)(struct kt_item *item);

	/**
	 * @cancel: take back @item if no helper has begun it
	 * @now_ns: about now
	 *
	 * By the thread that submitted it, or at the end by the caller.  Atomic
	 * against the helper that begins: exactly one of the two gets the item.
	 *
	 * Return: true if the item is the submitter's again and no helper will
	 * touch it; false if a helper has begun, or has left already.
	 */
	bool (*cancel)(struct kt_item *item, uint64_t now_ns);

	/**
	 * @state: where @item is
	 *
	 * By any thread while the job exists, also by one that only shows its
	 * progress.
	 *
	 * Return: the state.  After %KT_ITEM_DONE the calling thread sees all that
	 * the helper wrote.
	 */
	enum kt_item_state (*state)(const struct kt_item *item);

	/**
	 * @wait: wait until no helper is in @item, and lend it a priority
	 *
	 * By the caller at the end of a job, for one item at a time, after
	 * @cancel returned false.  Also by the thread that submitted @item, after
	 * @state returned %KT_ITEM_DONE, so that the host can clean up; this must
	 * not wait for long.  A helper that gets no CPU is given the calling
	 * thread's priority and may use its CPUs.  May return earlier if the
	 * helper could not begin after all: then @state returns %KT_ITEM_QUEUED,
	 * and the engine cancels the item again.
	 *
	 * Return: true if a priority was lent.
	 */
	bool (*wait)(struct kt_item *item);

	/**
	 * @node_has_permit: may one more helper be bound to node @id now?
	 *
	 * By the caller, while it chooses a range for a helper of a job with
	 * several: a range whose node has no permit left is passed over.  Only a
	 * hint: it takes nothing, and @permit_get may still refuse.  May be NULL
	 * if all nodes are alike.
	 *
	 * Return: true also for %KT_NO_NODE and for nodes without a limit.
	 */
	bool (*node_has_permit)(struct kt_context *ctx, int id);

	/**
	 * @permit_get: take the permits for a helper on @node
	 *
	 * By the caller, before @submit; the job's own budget is taken by then.
	 * @node is what @serving_node returned.  Sets item->node to the id of the
	 * node that the helper is bound to, or leaves it %KT_NO_NODE.  If the host
	 * binds the helper to another node than @node, it may call
	 * kt_item_redeal(), so that the helper begins with a range of that node.
	 * Must not wait for a permit.
	 *
	 * Return: false if the machine has none left, or if no helper shall
	 * run now for another reason; nothing is held then.
	 */
	bool (*permit_get)(struct kt_item *item, int node);

	/**
	 * @permit_put: give back what @permit_get took
	 *
	 * Exactly once for each @permit_get that returned true: by the helper that
	 * leaves, in kt_item_release(), by the thread that cancelled the item, or
	 * by the caller after @submit returned false.
	 */
	void (*permit_put)(struct kt_item *item);

	/**
	 * @permit_yield: @item's helper shall leave but has not left yet
	 *
	 * By the caller, at each refresh until the helper has left.  If the
	 * helper gets no CPU the host may let another one run in its place.
	 * May be NULL.
	 */
	void (*permit_yield)(struct kt_item *item);

	/**
	 * @allowed_threads: how many threads the job may have now
	 * @refresh: false to answer from what was last found, at once; true to
	 *	read limits, shares and the machine anew
	 * @until_ns: UINT64_MAX; set it to when the answer changes by itself
	 *
	 * By the caller, at the beginning and at each refresh.  For a detached
	 * job by the starting thread, and then by the thread that calls
	 * kt_context_resubmit().  If helpers may no longer run where they do, the
	 * host adds one to ctx->cpus_generation, and they leave after their chunk.
	 * If ctx->may_grow, the host may provide items and call kt_context_grow().
	 *
	 * Return: threads, the caller included; at least 1, at most
	 * ctx->wanted.
	 */
	unsigned (*allowed_threads)(struct kt_context *ctx, uint64_t now_ns,
				    bool refresh, uint64_t *until_ns);

	/**
	 * @serving_node: the node whose CPUs shall do @range
	 * @turn: spreads the helpers of ranges that several nodes may serve
	 *
	 * By the caller, before @permit_get, which gets the answer.  The nearest
	 * node with CPUs for helpers, if the range's own has none.
	 *
	 * Return: what the host calls this node (an index or an id); negative for
	 * any.
	 */
	int (*serving_node)(struct kt_context *ctx, unsigned range,
			    unsigned turn);

	/**
	 * @current_node: id of the node that the calling thread runs on
	 *
	 * By the caller, once, before its first chunk of a job with several ranges.
	 *
	 * Return: %KT_NO_NODE if it is unknown.
	 */
	int (*current_node)(void);

	/**
	 * @notify: the job has reached @stage
	 *
	 * By the caller; %KT_STAGE_BEGUN of a detached job by the starting
	 * thread.  For traces, the shared registry, and what else the host does
	 * for a job.  At %KT_STAGE_DRAINING the host must end its concurrency
	 * manager, because compensating items are the caller's from then on.  In
	 * the child of a fork, where the helpers are gone, only %KT_STAGE_ENDED
	 * follows kt_context_orphan().
	 */
	void (*notify)(struct kt_context *ctx, enum kt_stage stage);
};

#ifndef KT_HOST_BOUND
extern const struct kt_host_ops kt_host;
#endif

#endif /* KTASK_ENGINE_HOST_H */
