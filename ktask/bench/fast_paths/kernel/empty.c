// SPDX-License-Identifier: GPL-2.0-only
/*
 * ktask_empty.ko: what an empty job takes in a guest whose clock counts instructions.
 *
 * Loading it measures; the medians are its parameters.  It is compiled with the module
 * of this tree and with an older one (ktask/bench/fast_paths/compare), and uses only
 * what both have.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sort.h>

#include "kernel/ktask_kernel.h"

#define JOBS 301
#define WARM_JOBS 50

static unsigned long idle, ranges, one, busy;

module_param(idle, ulong, 0444);
MODULE_PARM_DESC(idle, "ns of a job of two threads, a CPU idles");
module_param(ranges, ulong, 0444);
MODULE_PARM_DESC(ranges, "the same, two ranges");
module_param(one, ulong, 0444);
MODULE_PARM_DESC(one, "ns of a job of one thread");
module_param(busy, ulong, 0444);
MODULE_PARM_DESC(busy, "ns of a job of two threads, no CPU idles");

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

static int compare_times(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Units of equal ranges, by so many threads. */
static unsigned long median_ns(unsigned int nr_ranges, unsigned int threads)
{
	const struct ktask_node nodes[] = {
		{ NULL, 2 / nr_ranges, 0 },
		{ (void *)1, 1, 0 },
	};
	DEFINE_KTASK_CTL(ctl, do_nothing, NULL, 1);
	static u64 ns[JOBS];
	int i;

	ktask_ctl_set_max_threads(&ctl, threads);
	for (i = -WARM_JOBS; i < JOBS; i++) {
		u64 start_ns = ktime_get_ns();

		ktask_run_numa(nodes, nr_ranges, &ctl);
		if (i >= 0)
			ns[i] = ktime_get_ns() - start_ns;
	}
	sort(ns, JOBS, sizeof(*ns), compare_times, NULL);
	return ns[JOBS / 2];
}

static int load_main(void *arg)
{
	while (!kthread_should_stop()) {
		barrier();
		cond_resched();
	}
	return 0;
}

static int __init empty_init(void)
{
	struct task_struct *load = kthread_create(load_main, NULL, "load");

	if (IS_ERR(load))
		return PTR_ERR(load);
	idle = median_ns(1, 2);
	ranges = median_ns(2, 2);
	one = median_ns(1, 1);
	/* The scheduler leaves the other CPU to this thread. */
	kthread_bind(load,
		     cpumask_any_but(cpu_online_mask, raw_smp_processor_id()));
	wake_up_process(load);
	msleep(20);
	busy = median_ns(1, 2);
	kthread_stop(load);
	return 0;
}

static void __exit empty_exit(void)
{
}

module_init(empty_init);
module_exit(empty_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("what an empty job of ktask takes");
