/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What scx_ktask looks at for a task that wakes, and before a CPU goes idle, is bounded
 * whatever the made_machine; what lies beyond the bound is found by the searches after it.
 *
 * The searches are the scheduler's own source.  Up to 1,024 CPUs and 256 caches.
 */
#include "ktest.h"

#include "support/scx_machine.h"

/* The searches do not use all of what they include. */
#pragma GCC diagnostic ignored "-Wunused-function"
#include "scx/cpu_search.h"
#include "scx/stealing.h"

static const struct {
	unsigned nr_cpus, nr_caches;
} shapes[] = {
	{ 2, 2 },    { 4, 2 },	   { 64, 4 },	 { 96, 2 },
	{ 1024, 1 }, { 1024, 16 }, { 1024, 64 }, { 1024, 256 },
};

#define NR_SHAPES (sizeof(shapes) / sizeof(*shapes))
/* Own cache: the last CPU and eight; another one: eight. */
#define ASKED_MAX (1 + 2 * SEARCHED_CPUS_MAX)

static struct task_struct normal_task = {
	.static_prio = 120,
	.cpus_ptr = &made_machine.all,
};

static unsigned make_machine(unsigned shape)
{
	unsigned nr = shapes[shape].nr_cpus;
	unsigned in_cache = nr / shapes[shape].nr_caches;

	memset(&made_machine, 0, sizeof(made_machine));
	memset(cpu_states, 0, sizeof(cpu_states));
	memset(cache_states, 0, sizeof(cache_states));
	memset(overloaded, 0, sizeof(overloaded));
	memset(running_low, 0, sizeof(running_low));
	nr_caches = shapes[shape].nr_caches;
	for (unsigned cache = 0; cache <= SCX_CACHES_MAX; cache++)
		first_of_cache[cache] =
			cache < nr_caches ? cache * in_cache : nr;
	for (unsigned cpu = 0; cpu < nr; cpu++) {
		cpus_by_cache[cpu] = cpu;
		cache_of_cpu[cpu] = cpu / in_cache;
		made_machine.all.has[cpu] = true;
	}
	normal_task.nr_cpus_allowed = (int)nr;
	return nr;
}

/* In the mask alone: none of these CPUs runs one. */
static void pretend_low_everywhere(void)
{
	for (__u32 cache = 0; cache < nr_caches; cache++)
		low_line_of(cache)->bits |= bit_of(cache);
}

/* Return: which of the first searches found @cpu, from 1 on; 0 if none of @max did */
static unsigned searches_until(__s32 cpu, unsigned max)
{
	for (unsigned nr = 1; nr <= max; nr++) {
		__u64 flags = 0;

		if (choose_cpu(&normal_task, 0, &flags) == cpu)
			return nr;
	}
	return 0;
}

static unsigned windows_of(unsigned nr, unsigned window)
{
	return (nr + window - 1) / window;
}

static void a_wakeup_asks_few_cpus(void **state)
{
	for (unsigned shape = 0; shape < NR_SHAPES; shape++) {
		unsigned nr = make_machine(shape), most = 0;

		/* All other caches seem to have low tasks: the most that it may ask. */
		pretend_low_everywhere();
		for (unsigned i = 0; i < 3 * nr; i++) {
			__u64 flags = 0;

			made_machine.nr_cpus_asked = 0;
			assert_int_equal(choose_cpu(&normal_task,
						    (__s32)(i % nr), &flags),
					 -1);
			if (made_machine.nr_cpus_asked > most)
				most = made_machine.nr_cpus_asked;
		}
		print_message("# %u CPUs, %u caches: %u CPUs asked at most\n",
			      nr, nr_caches, most);
		assert_in_range(most, 1, ASKED_MAX);
	}
}

static void an_idle_cpu_of_the_cache_is_found(void **state)
{
	for (unsigned shape = 0; shape < NR_SHAPES; shape++) {
		unsigned nr = make_machine(shape), in_cache = nr / nr_caches;
		unsigned max = windows_of(in_cache, SEARCHED_CPUS_MAX) + 1;

		/* Others' low tasks must not lead this search astray. */
		pretend_low_everywhere();
		for (unsigned cpu = 0; cpu < in_cache; cpu++) {
			made_machine.idle.has[cpu] = true;
			assert_in_range(searches_until((__s32)cpu, max), 1,
					max);
			assert_false(made_machine.idle.has[cpu]);
		}
	}
}

static void a_low_task_of_another_cache_is_found(void **state)
{
	for (unsigned shape = 0; shape < NR_SHAPES; shape++) {
		unsigned nr = make_machine(shape), in_cache = nr / nr_caches;
		unsigned lines = windows_of(nr_caches, CACHES_IN_LINE);
		unsigned max = windows_of(lines, SEARCHED_LINES_MAX - 1) + 1;

		max *= windows_of(in_cache, SEARCHED_CPUS_MAX) + 1;
		for (unsigned cpu = in_cache; cpu < nr; cpu += 1 + nr / 200) {
			cpu_states[cpu].runs_low = 1;
			note_low_begins(cache_of((__s32)cpu));
			assert_in_range(searches_until((__s32)cpu, max), 1,
					max);
			assert_int_equal(cpu_states[cpu].runs_low, 0);
			note_low_ends(cache_of((__s32)cpu));
		}
		for (unsigned line = 0; line < LINES; line++)
			assert_int_equal(running_low[line].bits, 0);
	}
}

/* A thief asks only queues of which the mask says that they have tasks. */
static void a_task_that_waits_anywhere_is_stolen(void **state)
{
	for (unsigned shape = 0; shape < NR_SHAPES; shape++) {
		unsigned lines, max, worst = 0;

		make_machine(shape);
		lines = windows_of(nr_caches, CACHES_IN_LINE);
		max = windows_of(lines, SEARCHED_LINES_MAX - 1) + 1;
		for (__u32 cache = 1; cache < nr_caches; cache++) {
			unsigned tries = 1;

			made_machine.waiting[QUEUE_OF_CACHE(NORMAL, cache)] = 1;
			mark_overloaded(NORMAL, cache);
			made_machine.nr_queues_asked = 0;
			while (!steal_task(NORMAL, 0, 0))
				assert_true(tries++ < max);
			assert_int_equal(made_machine.nr_queues_asked, 1);
			if (tries > worst)
				worst = tries;
		}
		print_message("# %u caches: stolen at try %u at the latest\n",
			      nr_caches, worst);
	}
}

static void a_thief_without_prey_asks_no_queue(void **state)
{
	for (unsigned shape = 0; shape < NR_SHAPES; shape++) {
		make_machine(shape);
		for (unsigned i = 0; i < 1000; i++)
			assert_false(steal_task(NORMAL, 0, 0));
		assert_int_equal(made_machine.nr_queues_asked, 0);
	}
}

KTEST_MAIN(KTEST(a_wakeup_asks_few_cpus),
	   KTEST(an_idle_cpu_of_the_cache_is_found),
	   KTEST(a_low_task_of_another_cache_is_found),
	   KTEST(a_task_that_waits_anywhere_is_stolen),
	   KTEST(a_thief_without_prey_asks_no_queue))
