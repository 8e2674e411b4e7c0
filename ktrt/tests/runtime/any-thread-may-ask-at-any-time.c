/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that is none of the runtime's may ask what that is like, and have a task
 * done, while another one starts or ends it.
 */
#include "support/runs.h"

#include <pthread.h>

#define ROUNDS 40

static unsigned over, wrong;
static unsigned long ran;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static void note_right(bool right)
{
	if (!right)
		more(wrong);
}

static void *ask_often(void *unused)
{
	while (!get(over)) {
		struct ktrt_info info = KTRT_INFO_INIT;
		int cpu = 0, nr = ktrt_info_get(&info);

		note_right(nr == -ESRCH ||
			   (!nr && info.workers && info.backend));
		nr = ktrt_cpus(&cpu, 1);
		note_right(nr == -ESRCH || (nr > 0 && cpu >= 0));
		nr = ktrt_thread_indices();
		note_right(nr == -ESRCH || nr > 0);
	}
	return NULL;
}

/* Not all the time: who ends the runtime waits until it is gone. */
static void *has_tasks_done(void *unused)
{
	while (!get(over)) {
		int code = ktrt_run(count_task, NULL);

		note_right(code == -ESRCH || code == 0);
		nap_us(300);
	}
	return NULL;
}

static void start_and_stop(const struct way *way)
{
	int error;

	start_way(way);
	for (int i = 0; i < 10; i++)
		assert_int_equal(ktrt_spawn(count_task, NULL), 0);
	assert_int_equal(ktrt_wait(), 0);
	while ((error = ktrt_stop()) == -EBUSY)
		nap_us(100);
	assert_int_equal(error, 0);
}

static void at_any_time(void **state)
{
	static void *(*const others[])(void *) = { ask_often, ask_often,
						   has_tasks_done };
	pthread_t threads[KTEST_ARRAY_SIZE(others)];

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(others); i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, others[i], NULL), 0);
	/* Mostly without UMT, which takes long to come. */
	for (int i = 0; i < ROUNDS; i++)
		start_and_stop(&all_ways[i % 8 ? 2 : 0]);
	set(over, 1);
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(others); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(get(wrong), 0);
	assert_true(get(ran) >= 10 * ROUNDS);
}

KTEST_MAIN(KTEST(at_any_time))
