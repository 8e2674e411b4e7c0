/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread that is about to wait sleeps at once, and does not spin, while
 * tasks are queued that the worker of the CPU under it could do.
 */
#include "support/runs.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/rt.h"

static struct worker *attached, *other;
static uint32_t own_cpu;

/* In a runtime without threads. */
static void lay_out(void)
{
	cpu_set_t cpus;

	memset(&rt, 0, sizeof(rt));
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	assert_int_equal(cores_lay_out(&cpus, CPU_SETSIZE, 1), 0);
	rt.options.max_threads = 4;
	rt.leader_fd = -1;
	pthread_mutex_init(&rt.pool_lock, NULL);
	pool_init(&rt.tasks, sizeof(struct ktrt_task));
	assert_int_equal(rt_make_slots(), 0);
	attached = worker_new(0);
	other = worker_new(0);
	assert_true(attached && other);
	other->core = &rt.cores[0];
	own_cpu = (uint32_t)rt.cores[0].cpu;
	attached->on_cpu = &own_cpu;
	*mask_flag(rt.idle, 0) = 0;
}

static void take_down(void)
{
	park_forget();
	worker_free_all();
	pool_destroy(&rt.tasks);
	pthread_mutex_destroy(&rt.pool_lock);
	free(rt.workers);
	free(rt.loaded);
	cores_free();
	memset(&rt, 0, sizeof(rt));
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
	take_down();
}

KTEST_MAIN(KTEST(queued_tasks_decide))
