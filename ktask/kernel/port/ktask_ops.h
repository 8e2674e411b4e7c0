/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The operations of the kernel host, bound when engine/ is compiled; see
 * engine/host.h.  Those that are more than a line are in kernel/engine/kernel_host.c.
 */
#ifndef KTASK_OPS_H
#define KTASK_OPS_H

#include <linux/topology.h>

bool kt_host_submit(struct kt_item *item);
bool kt_host_wait(struct kt_item *item);
bool kt_host_permit_get(struct kt_item *item, int wanted);
void kt_host_permit_put(struct kt_item *item);
unsigned int kt_host_allowed_threads(struct kt_context *ctx, uint64_t now_ns,
				     bool refresh, uint64_t *until_ns);

static inline bool kt_host_cancel(struct kt_item *item, uint64_t now_ns)
{
	return pool_cancel(&item->host.pooled);
}

static inline enum kt_item_state kt_host_state(const struct kt_item *item)
{
	switch (pool_item_state(&item->host.pooled)) {
	case POOL_ITEM_QUEUED:
		return KT_ITEM_QUEUED;
	case POOL_ITEM_RUNNING:
		return KT_ITEM_RUNNING;
	default:
		return KT_ITEM_DONE;
	}
}

/* A range that belongs to no node needs no permit of one. */
static inline bool kt_host_node_has_permit(struct kt_context *ctx, int nid)
{
	const struct kt_cap *cap = pool_node(nid);

	return !cap || !pool_is_full(cap);
}

static inline int kt_host_serving_node(struct kt_context *ctx,
				       unsigned int range, unsigned int turn)
{
	return ctx->job.ranges[range].node;
}

static inline int kt_host_current_node(void)
{
	return numa_node_id();
}

/* One function for each stage, because the engine calls notify() with a constant. */
void kt_host_begun(struct kt_context *ctx);
void kt_host_draining(struct kt_context *ctx);
void kt_host_drained(struct kt_context *ctx);
void kt_host_ended(struct kt_context *ctx);

static inline void kt_host_notify(struct kt_context *ctx, enum kt_stage stage)
{
	switch (stage) {
	case KT_STAGE_BEGUN:
		kt_host_begun(ctx);
		break;
	case KT_STAGE_ADJUSTED:
		break;
	case KT_STAGE_DRAINING:
		if (ctx->helpers.nr)
			kt_host_draining(ctx);
		break;
	case KT_STAGE_DRAINED:
		if (ctx->helpers.nr)
			kt_host_drained(ctx);
		break;
	case KT_STAGE_ENDED:
		kt_host_ended(ctx);
		break;
	}
}

static const struct kt_host_ops kt_host = {
	.submit = kt_host_submit,
	.cancel = kt_host_cancel,
	.state = kt_host_state,
	.wait = kt_host_wait,
	.node_has_permit = kt_host_node_has_permit,
	.permit_get = kt_host_permit_get,
	.permit_put = kt_host_permit_put,
	.allowed_threads = kt_host_allowed_threads,
	.serving_node = kt_host_serving_node,
	.current_node = kt_host_current_node,
	.notify = kt_host_notify,
};

#endif /* KTASK_OPS_H */
