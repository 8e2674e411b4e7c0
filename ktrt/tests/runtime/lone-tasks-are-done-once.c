/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread outside that makes one task and waits for it, over and over, hands
 * it to the worker of its CPU.  Each such task is done once, by whomever: also
 * beside others that do the same, when many follow the one, when its maker
 * does not wait after all, and when its parts come with priorities, children,
 * groups and events.  Records go to and fro and do not become more.
 */
#include "support/runs.h"

#include <pthread.h>
#include <stdint.h>

#include "runtime/rt.h"

#define THREADS 4

static unsigned long ran, made;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

/* Nobody counts as looking who does not, all cores as idle. */
static bool books_are_right(void)
{
	return holds_soon(at_load_seq(&rt.idlers) == rt.nr_cores);
}

/* Pauses in which workers sleep, are about to, or still look. */
static void pause_for(unsigned round)
{
	static const long us[] = { 0, 0, 5, 60, 300 };

	if (us[round % 5])
		nap_us(us[round % 5]);
}

/* Makes its maker one of those that make one task and wait. */
static void make_it_a_habit(void)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ktrt_spawn(count_task, NULL), 0);
		assert_int_equal(ktrt_wait(), 0);
	}
}

static void after_pauses_of_any_length(void)
{
	unsigned nr = KTEST_TSAN ? 200 : 1000;

	for (unsigned i = 1; i <= nr; i++) {
		set(ran, 0);
		assert_int_equal(ktrt_spawn(count_task, NULL), 0);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(get(ran), 1);
		pause_for(i);
	}
	assert_true(books_are_right());
}

static void when_many_follow(void)
{
	for (unsigned i = 0; i < 20; i++) {
		make_it_a_habit();
		pause_for(i);
		set(ran, 0);
		for (int j = 0; j < 100; j++)
			assert_int_equal(ktrt_spawn(count_task, NULL), 0);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(get(ran), 100);
	}
	assert_true(books_are_right());
}

static void when_the_maker_goes_on(void)
{
	for (unsigned i = 0; i < 10; i++) {
		make_it_a_habit();
		nap_us(300);
		set(ran, 0);
		assert_int_equal(ktrt_spawn(count_task, NULL), 0);
		assert_true(holds_soon(get(ran) == 1));
		assert_int_equal(ktrt_wait(), 0);
	}
	assert_true(books_are_right());
}

static int make_two(void *arg)
{
	more(ran);
	return ktrt_spawn(count_task, NULL) || ktrt_spawn(count_task, NULL)
		       ? -EIO
		       : 0;
}

struct seen {
	char text[200]; /* more than a record can hold */
	struct ktrt_task *task;
};

static struct ktrt_task *waits;

static int wait_for_event(void *arg)
{
	struct seen *seen = arg;

	assert_string_equal(seen->text, "argument");
	assert_int_equal(ktrt_events_add(1), 0);
	set(waits, ktrt_self());
	more(ran);
	return 0;
}

static void with_all_that_tasks_have(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct seen seen = { "argument", NULL };
	unsigned long datum = 0;
	struct ktrt_dep dep = { &datum, 0, KTRT_INOUT };

	for (unsigned i = 0; i < 30; i++) {
		make_it_a_habit();
		pause_for(i);
		set(ran, 0);
		assert_int_equal(ktrt_run(make_two, NULL), 0);
		assert_int_equal(get(ran), 3);
		attr = (struct ktrt_attr)KTRT_ATTR_INIT;
		attr.priority = 5;
		attr.deps = &dep;
		attr.nr_deps = 1;
		assert_int_equal(ktrt_spawn_attr(make_two, NULL, &attr), 0);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(get(ran), 6);
		set(waits, NULL);
		assert_int_equal(
			ktrt_spawn_copy(wait_for_event, &seen, sizeof(seen)),
			0);
		assert_true(holds_soon(get(waits)));
		ktrt_events_done(get(waits), 1);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(get(ran), 7);
	}
	assert_true(books_are_right());
}

static void *be_another(void *arg)
{
	unsigned nr = KTEST_TSAN ? 100 : 500;

	assert_int_equal(ktrt_attach(), 0);
	for (unsigned i = 0; i < nr; i++) {
		unsigned some = i % 50 == 49 ? 20 : 1;

		for (unsigned j = 0; j < some; j++) {
			more(made);
			assert_int_equal(ktrt_spawn(count_task, NULL), 0);
		}
		assert_int_equal(ktrt_wait(), 0);
		pause_for(i + (unsigned)(uintptr_t)arg);
		if (i % 100 == 99) {
			assert_int_equal(ktrt_detach(), 0);
			assert_int_equal(ktrt_attach(), 0);
		}
	}
	assert_int_equal(ktrt_detach(), 0);
	return NULL;
}

static void beside_others(void)
{
	pthread_t threads[THREADS];

	set(ran, 0);
	set(made, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, be_another,
						(void *)i),
				 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(get(ran), get(made));
	assert_true(books_are_right());
}

static void without_more_and_more_records(void)
{
	struct ktrt_info before = { .struct_size = sizeof(before) };
	struct ktrt_info after = before;
	unsigned nr = KTEST_TSAN ? 2000 : 20000;

	make_it_a_habit();
	assert_int_equal(ktrt_info_get(&before), 0);
	for (unsigned i = 0; i < nr; i++) {
		assert_int_equal(ktrt_spawn(count_task, NULL), 0);
		assert_int_equal(ktrt_wait(), 0);
	}
	assert_int_equal(ktrt_info_get(&after), 0);
	/* At most the batches that workers keep. */
	assert_true(after.memory_bytes <= before.memory_bytes + (1 << 20));
	assert_true(books_are_right());
}

static void in_all_ways(void **state)
{
	in_each_way(after_pauses_of_any_length);
	in_each_way(when_many_follow);
	in_each_way(when_the_maker_goes_on);
	in_each_way(with_all_that_tasks_have);
	in_each_way(beside_others);
	in_each_way(without_more_and_more_records);
}

KTEST_MAIN(KTEST(in_all_ways))
