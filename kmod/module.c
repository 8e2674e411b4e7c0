// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: what comes first and what goes last.
 *
 * Clients are other modules that use its symbols, so that it cannot be
 * unloaded while they are there, or programs that have its device open; with
 * them all jobs are gone.
 */
#include <linux/module.h>

#include "kmod/compat.h"
#include "kmod/memory.h"
#include "kmod/pool.h"
#include "kmod/stats.h"

#define CREATE_TRACE_POINTS
#include "kmod/trace.h"

static int __init ktask_init(void)
{
	int error = pool_init();

	if (error)
		return error;
	error = device_init();
	if (error)
		pool_exit();
	else
		stats_init();
	return error;
}

static void __exit ktask_exit(void)
{
	stats_exit();
	device_exit();
	pool_exit();
}

module_init(ktask_init);
module_exit(ktask_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION(
	"one big job done by several threads of the lowest priority");
