/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that frees or unmaps memory waits for those that make pages of it, also where
 * the watcher has just given the mapping up: what is mapped there next is the program's
 * alone.  It lends them its priority.  A thread that maps where the kernel likes waits only
 * for makers of mappings that nobody tells of.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "ktest.h"

#include "preload/ahead/joined_ranges.c"
#include "preload/ahead/large_mappings.c"
#include "preload/ahead/page_makers.c"

#define START ((uintptr_t)0x10000000)
#define BLOCK (START + 16)
#define LEN ((uintptr_t)64 << 20)

/* What the table asks of the rest of the shim. */
size_t shim_ahead_min_bytes = LEN;

unsigned inherited_mappings_nr(void)
{
	return 0;
}

void inherited_mappings_drop(uintptr_t start, uintptr_t end)
{
}

void inherited_mappings_give_back(uintptr_t start, uintptr_t end)
{
}

int real_madvise(void *addr, size_t len, int advice)
{
	return 0;
}

bool shim_memory_is_watched(void)
{
	return false;
}

void shim_made_drop(const void *addr, size_t len)
{
}

enum shim_why ahead_objection(void)
{
	return SHIM_NR_WHY;
}

void shim_decline(enum shim_why why, size_t len)
{
}

void real_sleep(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static atomic_uint nr_asked;

bool shim_is_ours(void)
{
	atomic_fetch_add(&nr_asked, 1);
	return true;
}

bool shim_filter_allows(void)
{
	return true;
}

int ktask_wait(struct ktask_job *job)
{
	return 0;
}

static atomic_bool has_returned;

static void *free_block(void *unused)
{
	shim_ahead_stop_block((const void *)BLOCK, false);
	atomic_store(&has_returned, true);
	return NULL;
}

static void *unmap_range(void *unused)
{
	if (shim_ahead_watches())
		shim_ahead_stop((const void *)START, LEN, false);
	atomic_store(&has_returned, true);
	return NULL;
}

/* Whoever does not wait has returned by then, unless the machine is very busy. */
static bool returns_soon(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int ms = 0; ms < 200 && !atomic_load(&has_returned); ms++)
		nanosleep(&moment, NULL);
	return atomic_load(&has_returned);
}

static void wait_for_maker(void *(*end_use)(void *unused), bool given_up)
{
	struct large_mapping *mapping =
		large_mapping_add(START, START + LEN, BLOCK, false);
	pthread_t thread;
	bool early;

	assert_non_null(mapping);
	assert_true(large_mapping_enter(mapping));
	if (given_up)
		large_mapping_give_up(mapping);
	atomic_store(&has_returned, false);
	assert_int_equal(pthread_create(&thread, NULL, end_use, NULL), 0);
	early = returns_soon();
	large_mapping_leave(mapping);
	assert_int_equal(pthread_join(thread, NULL), 0);
	large_mapping_free(mapping);
	assert_false(early);
	assert_false(shim_ahead_watches());
}

static void a_free_waits(void **unused)
{
	wait_for_maker(free_block, false);
	wait_for_maker(free_block, true);
}

static void an_unmapping_waits(void **unused)
{
	wait_for_maker(unmap_range, false);
	wait_for_maker(unmap_range, true);
}

/* Memory that was freed comes again at its old address, before the watcher has seen
 * that. */
static void a_block_that_came_again_is_stopped_too(void **unused)
{
	struct large_mapping *old =
		large_mapping_add(START, START + LEN, BLOCK, false);
	struct large_mapping *again;

	shim_ahead_stop_block((const void *)BLOCK, false);
	again = large_mapping_add(START, START + LEN, BLOCK, false);
	assert_ptr_not_equal(again, old);
	assert_true(large_mapping_enter(again));
	large_mapping_leave(again);
	shim_ahead_stop_block((const void *)BLOCK, false);
	assert_false(large_mapping_enter(again));
	large_mapping_free(old);
	large_mapping_free(again);
	assert_false(shim_ahead_watches());
}

static void *map_elsewhere(void *unused)
{
	if (shim_ahead_replaces())
		shim_ahead_replaced((void *)(START + LEN), LEN);
	atomic_store(&has_returned, true);
	return NULL;
}

static bool set_policy(int policy)
{
	const struct sched_param none = { 0 };

	return !sched_setscheduler(0, policy, &none);
}

/* In a piece, until somebody raises it or for 5 s. */
static void *make_while_low(void *found)
{
	struct large_mapping *mapping =
		large_mapping_add(START, START + LEN, BLOCK, found);
	const struct timespec moment = { .tv_nsec = 1000000 };
	pthread_t waiter;
	bool raised = false;

	if (!mapping || !large_mapping_enter(mapping) ||
	    pthread_create(&waiter, NULL, found ? map_elsewhere : unmap_range,
			   NULL))
		return "no mapping or thread";
	set_policy(SCHED_IDLE);
	for (int ms = 0; ms < 5000 && !raised; ms++) {
		nanosleep(&moment, NULL);
		raised = sched_getscheduler(0) == SCHED_OTHER;
	}
	large_mapping_leave(mapping);
	pthread_join(waiter, NULL);
	large_mapping_free(mapping);
	return raised ? NULL : "nobody raised the maker";
}

static void *try_to_rise(void *may)
{
	*(bool *)may = set_policy(SCHED_IDLE) && set_policy(SCHED_OTHER);
	return NULL;
}

static void *result_of_thread(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	return result;
}

static void a_maker_is_raised(void **unused)
{
	bool may_raise = false;
	const char *why;

	result_of_thread(try_to_rise, &may_raise);
	if (!may_raise)
		ktest_skip("no thread may be raised");
	for (uintptr_t found = 0; found < 2; found++) {
		why = result_of_thread(make_while_low, (void *)found);
		if (why)
			fail_msg("%s", why);
	}
}

static void a_mapping_asks_nothing_if_all_were_told(void **unused)
{
	struct large_mapping *mapping =
		large_mapping_add(START, START + LEN, BLOCK, false);
	unsigned before = atomic_load(&nr_asked);

	assert_true(large_mapping_enter(mapping));
	assert_true(shim_ahead_replaces());
	shim_ahead_replaced((void *)START, LEN);
	assert_int_equal(mapping->state, MAPPING_WATCHED);
	large_mapping_leave(mapping);
	large_mapping_free(mapping);
	assert_int_equal(atomic_load(&nr_asked), before);
}

/* The list of mappings is read, and then what was found in it is added. */
static void what_is_mapped_meanwhile_is_seen(void **unused)
{
	unsigned long before = large_mappings_replaced(), then;

	assert_int_not_equal(before, 0);
	assert_true(shim_ahead_replaces());
	assert_int_equal(large_mappings_replaced(), 0);
	shim_ahead_replaced((void *)START, LEN);
	then = large_mappings_replaced();
	assert_int_not_equal(then, before);
	assert_int_not_equal(then, 0);
	assert_int_equal(large_mappings_replaced(), then);
}

/* A call that began before something was found ends behind that. */
static void what_is_found_during_a_call_is_given_up(void **unused)
{
	struct large_mapping *mapping;

	assert_true(shim_ahead_replaces());
	mapping = large_mapping_add(START, START + LEN, 0, true);
	assert_non_null(mapping);
	assert_false(large_mapping_enter(mapping));
	shim_ahead_replaced((void *)START, LEN);
	assert_int_equal(mapping->state, MAPPING_STOPPED);
	large_mapping_free(mapping);
}

KTEST_MAIN(KTEST(what_is_mapped_meanwhile_is_seen),
	   KTEST(what_is_found_during_a_call_is_given_up), KTEST(a_free_waits),
	   KTEST(an_unmapping_waits),
	   KTEST(a_block_that_came_again_is_stopped_too),
	   KTEST(a_maker_is_raised),
	   KTEST(a_mapping_asks_nothing_if_all_were_told))
