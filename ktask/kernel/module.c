// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: in which order its parts begin and end.  If ktask is built in, kernel/builtin.c
 * does this.
 *
 * Clients are other modules that use its symbols, and programs that have its device open.
 * The module cannot be unloaded while there is one.  So there are no jobs when it ends.
 */
#include <linux/module.h>

#include "kernel/client/device_memory.h"
#include "kernel/compat.h"
#include "kernel/engine/kernel_pool.h"
#include "kernel/engine/process_helper.h"
#include "kernel/stats.h"

static int __init ktask_init(void)
{
	int error = pool_init(false);

	if (error)
		return error;
	error = process_helpers_init();
	if (error)
		goto exit_pool;
	error = remote_init();
	if (!error)
		error = device_init();
	if (error)
		goto exit_process_helpers;
	stats_init();
	return 0;
exit_process_helpers:
	process_helpers_exit();
exit_pool:
	pool_exit();
	return error;
}

static void __exit ktask_exit(void)
{
	stats_exit();
	device_exit();
	process_helpers_exit();
	pool_exit();
}

module_init(ktask_init);
module_exit(ktask_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION(
	"one big job done by several threads of the lowest priority");
