// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: what comes first and what goes last.
 *
 * Clients are other modules that use its symbols, so that it cannot be
 * unloaded while they are there; with them all jobs are gone.
 */
#include <linux/module.h>

#include "kmod/compat.h"
#include "kmod/pool.h"

static int __init ktask_init(void)
{
	return pool_init();
}

static void __exit ktask_exit(void)
{
	pool_exit();
}

module_init(ktask_init);
module_exit(ktask_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION(
	"one big job done by several threads of the lowest priority");
