/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What tests of attached threads that help share: where these run, and a function that is
 * known to be brief although it may call any other.
 *
 * What the runtime knows of functions is one word for all whose addresses are alike in some
 * bits (runtime/func_kinds.h), so of two that a test has made known the first may be
 * forgotten again.
 */
#ifndef RUNTIME_TEST_ATTACHED_THREAD_H
#define RUNTIME_TEST_ATTACHED_THREAD_H

#include "runs.h"

#include <sched.h>

#include "runtime/func_kinds.h"

/* For as long as its own CPU is not the runtime's an attached thread does not help. */
static inline void stay_on_a_core(void)
{
	cpu_set_t cpus;
	int cpu;

	ktest_check(ktrt_cpus(&cpu, 1) >= 1);
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	ktest_check(!sched_setaffinity(0, sizeof(cpus), &cpus));
}

/* Brief, unless it is given another function, which @arg points at. */
static inline int call_briefly(void *arg)
{
	return arg ? (*(const ktrt_func *)arg)(NULL) : 0;
}

/* Workers do some until it is known that call_briefly() is brief. */
static inline void let_call_briefly_be_known(void)
{
	for (int i = 0; i < 10000 && !func_is_brief(call_briefly); i++) {
		for (int j = 0; j < 20; j++)
			ktest_check(!ktrt_spawn(call_briefly, NULL));
		(void)holds_soon(!sched_work_visible());
		ktest_check(!ktrt_wait());
	}
	ktest_check(func_is_brief(call_briefly));
}

/* A runtime of one worker that gets no other thread. */
static inline void start_with_one_worker(unsigned flags)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = options.max_threads = 1;
	options.flags = flags;
	ktest_check(!ktrt_start(&options));
	stay_on_a_core();
	let_call_briefly_be_known();
}

/* All tasks that this makes use the same datum. */
static inline void spawn_using(ktrt_func func, void *arg, unsigned mode,
			       struct ktrt_group *group)
{
	static char data;
	const struct ktrt_dep dep = { &data, 0, mode };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.group = group;
	ktest_check(!ktrt_spawn_attr(func, arg, &attr));
}

#endif /* RUNTIME_TEST_ATTACHED_THREAD_H */
