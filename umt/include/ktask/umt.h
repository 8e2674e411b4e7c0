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

static inline int kt_umt_add(void *user)
{
	return umt_thread_add((struct umt *)user);
}

static inline void kt_umt_remove(void *user)
{
	umt_thread_remove((struct umt *)user);
}

static inline int kt_umt_ready(void *user)
{
	const struct umt_core *cores = umt_cores((struct umt *)user);
	int nr = umt_nr_cores((struct umt *)user), ready = 0, cpu;

	for (cpu = 0; cpu < nr; cpu++)
		ready += umt_ready(cores, cpu);
	return ready;
}

static inline void kt_umt_calm(void *user)
{
	struct umt_event event;

	while (umt_next((struct umt *)user, &event) == 1)
		;
}

/**
 * ktask_use_umt - be told of blocked threads by @user
 *
 * @user belongs to the library from now on: it wants events, and reads them.
 * Undone by ktask_set_monitor(NULL), then umt_close().
 *
 * Return: as ktask_set_monitor(); -ENOTSUP for UMT_EXPLICIT, which knows only
 * what threads say themselves.
 */
static inline int ktask_use_umt(struct umt *user)
{
	struct ktask_monitor monitor = { sizeof(monitor), user,
					 kt_umt_add,	  kt_umt_remove,
					 kt_umt_ready,	  umt_fd(user),
					 kt_umt_calm };

	if (umt_backend(user) == UMT_EXPLICIT)
		return -95; /* ENOTSUP */
	umt_want(user, 1);
	return ktask_set_monitor(&monitor);
}

#ifdef __cplusplus
}
#endif

#endif /* KTASK_UMT_H */
