/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask: libumt as the monitor of libktask.  Neither library needs the other; a
 * program that includes this links both.
 */
#ifndef KTASK_UMT_H
#define KTASK_UMT_H

#include <ktask/monitor.h>
#include <umt.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int kt_umt_add(void *subscriber)
{
	return umt_thread_add((struct umt *)subscriber);
}

static inline void kt_umt_remove(void *subscriber)
{
	umt_thread_remove((struct umt *)subscriber);
}

static inline int kt_umt_ready(void *subscriber)
{
	const struct umt_core *cores = umt_cores((struct umt *)subscriber);
	int nr = umt_nr_cores((struct umt *)subscriber), ready = 0, cpu;

	for (cpu = 0; cpu < nr; cpu++)
		ready += umt_ready(cores, cpu);
	return ready;
}

static inline void kt_umt_drain(void *subscriber)
{
	struct umt_event event;

	while (umt_next((struct umt *)subscriber, &event) == 1)
		;
}

/**
 * ktask_use_umt - make @subscriber the monitor of libktask
 *
 * libktask turns on the events of @subscriber and reads them; nobody else may.
 * ktask_set_monitor(NULL) and then umt_close() undo the call.
 *
 * Return: as ktask_set_monitor(); -ENOTSUP for UMT_EXPLICIT, which knows only
 * what threads report themselves.
 */
static inline int ktask_use_umt(struct umt *subscriber)
{
	struct ktask_monitor monitor = { sizeof(monitor), subscriber,
					 kt_umt_add,	  kt_umt_remove,
					 kt_umt_ready,	  umt_fd(subscriber),
					 kt_umt_drain };

	if (umt_backend(subscriber) == UMT_EXPLICIT)
		return -95; /* ENOTSUP */
	umt_want(subscriber, 1);
	return ktask_set_monitor(&monitor);
}

#ifdef __cplusplus
}
#endif

#endif /* KTASK_UMT_H */
