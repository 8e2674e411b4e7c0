/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The last resort: threads report themselves when they begin and end waiting.  It is
 * always available, but knows only what threads report.
 *
 * Locking: soft.h.
 */
#include <sched.h>

#include "soft.h"

static struct soft_set explicit_threads;

static int probe_explicit(char why[WHY_MAX], char note[WHY_MAX])
{
	return 0;
}

static int explicit_open(struct umt *subscriber, size_t ring_bytes)
{
	return soft_open(subscriber);
}

static void explicit_close(struct umt *subscriber)
{
	soft_close(&explicit_threads, subscriber);
}

static int explicit_add(struct umt *subscriber)
{
	return soft_add(&explicit_threads, subscriber);
}

static int explicit_remove(struct umt *subscriber)
{
	return soft_remove(&explicit_threads, subscriber);
}

void umt_block_begin(void)
{
	struct soft_thread *self = soft_self(&explicit_threads);

	if (!self || self->nesting++)
		return;
	thread_lock();
	/* The thread may have moved to another core since it was counted. */
	soft_ready(self, sched_getcpu());
	soft_blocked(self);
	thread_unlock();
}

void umt_block_end(void)
{
	struct soft_thread *self = soft_self(&explicit_threads);

	if (!self || !self->nesting || --self->nesting)
		return;
	thread_lock();
	soft_ready(self, sched_getcpu());
	thread_unlock();
}

static void explicit_forked(void)
{
	soft_forget_all(&explicit_threads);
}

const struct backend explicit_backend = {
	.id = UMT_EXPLICIT,
	.probe = probe_explicit,
	.open = explicit_open,
	.close = explicit_close,
	.add = explicit_add,
	.remove = explicit_remove,
	.next = soft_next,
	.core_fd = soft_core_fd,
	.drain = soft_drain,
	.child = soft_child,
	.forked = explicit_forked,
};
