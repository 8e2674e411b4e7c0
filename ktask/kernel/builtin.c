// SPDX-License-Identifier: GPL-2.0-only
/*
 * ktask built into the kernel: when its parts are initialised.  They never end.
 *
 * The pool begins before the memory map is complete, because that is its first job
 * (page_alloc_init_late()).  The device and the statistics begin with other devices.
 *
 * Behaves badly without memory at boot: then jobs never have helpers.
 */
#include <linux/init.h>
#include <linux/ktask.h>
#include <linux/printk.h>

#include "kernel/client/device_memory.h"
#include "kernel/engine/kernel_pool.h"
#include "kernel/engine/process_helper.h"
#include "kernel/stats.h"

void __init ktask_init_early(void)
{
	int error = process_helpers_init();

	if (!error)
		error = pool_init(true);
	if (error)
		pr_warn("ktask: no helpers: %d\n", error);
}

bool ktask_has_helpers(void)
{
	return kt_load(&pool_machine()->limit) > 0;
}

static int __init begin_device(void)
{
	stats_init();
	return device_init();
}
device_initcall(begin_device);

static int __init end_boot(void)
{
	pool_end_boot();
	return 0;
}
late_initcall(end_boot);
