/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread that is about to wait sleeps at once, and does not spin, while
 * tasks are queued that the worker of the CPU under it could do.
 */
#include "support/runs.h"

#include "support/bare_runtime.h"

static struct worker *attached, *other;
static uint32_t own_cpu;

static void lay_out(void)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	bare_runtime_begin(&cpus, 1, 4);
	attached = worker_new(0);
	other = worker_new(0);
	assert_true(attached && other);
	other->core = &rt.cores[0];
	own_cpu = (uint32_t)rt.cores[0].cpu;
	attached->on_cpu = &own_cpu;
	*mask_flag(rt.idle, 0) = 0;
}

static void queued_tasks_decide(void **state)
{
	struct ktrt_task task;

	lay_out();
	memset(&task, 0, sizeof(task));
	assert_false(wake_below(attached));
	assert_true(queue_own(attached, &task));
	assert_true(wake_below(attached));
	/* Who works itself waits in another way. */
	assert_false(wake_below(other));
	/* Nor is there anybody to leave another CPU to. */
	own_cpu = (uint32_t)rt.nr_cpus;
	assert_false(wake_below(attached));
	own_cpu = (uint32_t)rt.cores[0].cpu;
	assert_ptr_equal(deque_pop(&attached->deque), &task);
	assert_false(wake_below(attached));
	bare_runtime_end();
}

KTEST_MAIN(KTEST(queued_tasks_decide))
