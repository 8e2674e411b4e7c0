/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread is stalled when it has been in one chunk for long; stalled threads
 * count once nobody ran and nothing was done in the job for 20 ms and four times
 * what chunks take, and until they get on.
 */
#include "ktest.h"

#include "user/blocking/thread_sample.h"
#include "user/blocking/manager_sample.h"

#define MS 1000000ull
#define ITEMS 3
#define WORKERS 2

static void other_threads_and_chunks_begin_anew(void **state)
{
	struct thread_progress last = { 0 };

	assert_false(thread_is_stalled(&last, 7, 0, 10, 5));
	assert_false(thread_is_stalled(&last, 7, 0, 14, 5));
	assert_true(thread_is_stalled(&last, 7, 0, 15, 5));
	assert_false(thread_is_stalled(&last, 7, 1, 16, 5));
	assert_true(thread_is_stalled(&last, 7, 1, 21, 5));
	assert_false(thread_is_stalled(&last, 8, 1, 22, 5));
	assert_false(thread_is_stalled(&last, 0, 1, 100, 5));
	assert_false(thread_is_stalled(&last, 0, 1, 200, 5));
	assert_false(thread_is_stalled(&last, 8, 1, 201, 5));
	/* A clock that goes back. */
	assert_false(thread_is_stalled(&last, 8, 1, 3, 5));
	assert_true(thread_is_stalled(&last, 8, 1, 8, 5));
}

static struct user_job job;
static struct kt_item worker_items[WORKERS];
static struct thread_progress last[1 + ITEMS + WORKERS];
static struct manager manager;
static uint64_t done;
static unsigned running;

/* The caller, two helpers and a worker. */
static void set_up(void)
{
	memset(&job, 0, sizeof(job));
	memset(worker_items, 0, sizeof(worker_items));
	memset(last, 0, sizeof(last));
	job.ctx.helpers.items = job.own_items;
	job.ctx.helpers.nr = ITEMS;
	job.ctx.helpers.nr_used = 2;
	job.own_items[0].host.tid = 2;
	job.own_items[1].host.tid = 3;
	job.ctx.job.split.min_chunk = 1;
	job.ctx.job.split.target_ns = MS;
	worker_items[0].host.tid = 4;
	manager = (struct manager){ .job = &job,
				    .helpers.items = worker_items,
				    .helpers.nr_used = 1,
				    .last = last,
				    .caller = 1 };
	done = 1;
	running = 0;
}

static unsigned count_stalled(uint64_t ms)
{
	return sample_stalled(&manager, done, running, ms * MS);
}

static void all_stall_once_nothing_is_done(void **state)
{
	set_up();
	assert_int_equal(count_stalled(1), 0);
	assert_int_equal(count_stalled(20), 0);
	assert_int_equal(count_stalled(21), 4);
	/* A thread that joins is stalled after as long. */
	worker_items[1].host.tid = 5;
	manager.helpers.nr_used = 2;
	assert_int_equal(count_stalled(30), 4);
	assert_int_equal(count_stalled(49), 4);
	assert_int_equal(count_stalled(50), 5);
}

static void who_gets_on_counts_no_more(void **state)
{
	set_up();
	count_stalled(1);
	assert_int_equal(count_stalled(50), 4);
	job.own_items[0].worker.units = 1;
	done++;
	assert_int_equal(count_stalled(51), 3);
	worker_items[0].worker.units = 1;
	done++;
	assert_int_equal(count_stalled(52), 2);
	job.ctx.caller.units = 1;
	job.own_items[1].host.tid = 0;
	done++;
	assert_int_equal(count_stalled(53), 0);
	/* Work is done: only a rate tells how many pay. */
	for (uint64_t ms = 53; ms < 200; ms++) {
		done++;
		assert_int_equal(count_stalled(ms), 0);
	}
}

/* They may wait for who runs. */
static void none_count_while_one_runs(void **state)
{
	set_up();
	count_stalled(1);
	running = 1;
	assert_int_equal(count_stalled(500), 0);
	running = 0;
	assert_int_equal(count_stalled(501), 4);
	running = 1;
	assert_int_equal(count_stalled(502), 4);
}

/* A chunk of a slow device takes its time. */
static void long_chunks_stall_later(void **state)
{
	set_up();
	job.ctx.job.cost.mean = 10 * MS << KT_COST_SHIFT;
	count_stalled(1);
	assert_int_equal(count_stalled(60), 0);
	assert_int_equal(count_stalled(61), 4);
	/* Not for ever, though. */
	set_up();
	job.ctx.job.cost.mean = 10000 * MS << KT_COST_SHIFT;
	count_stalled(1);
	assert_int_equal(count_stalled(220), 0);
	assert_int_equal(count_stalled(221), 4);
}

/* 64 threads wait for a device that does one chunk in 10 ms: once it has
 * stalled, all threads are stalled, but what chunks take by then says that they need not. */
static void slow_devices_recover(void **state)
{
	set_up();
	job.ctx.job.cost.mean = 4 * MS << KT_COST_SHIFT;
	count_stalled(1);
	assert_int_equal(count_stalled(40), 4);
	job.ctx.job.cost.mean = 60 * MS << KT_COST_SHIFT;
	done++;
	assert_int_equal(count_stalled(60), 0);
}

KTEST_MAIN(KTEST(other_threads_and_chunks_begin_anew),
	   KTEST(all_stall_once_nothing_is_done),
	   KTEST(who_gets_on_counts_no_more), KTEST(none_count_while_one_runs),
	   KTEST(long_chunks_stall_later), KTEST(slow_devices_recover))
