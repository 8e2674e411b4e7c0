/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ten million tasks take the memory of some thousands, also with dependences;
 * a runtime without tasks uses no CPU; without memory tasks are refused or done
 * at once, and none is lost.
 */
#include "support/runs.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "failalloc.h"

#define MANY (KTEST_TSAN || KTEST_ASAN ? 200000ul : 10000000ul)

static unsigned long ran;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static int make_many(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &ran, 0, KTRT_INOUT };
	unsigned long i;

	attr.deps = &dep;
	attr.nr_deps = 1;
	for (i = 0; i < MANY / 2; i++)
		if (ktrt_spawn(count_task, NULL))
			return -ENOMEM;
	/* New data all the time; one that everybody reads. */
	for (i = 0; i < MANY / 2; i++) {
		dep.addr = i % 2 ? (char *)arg + i : (char *)arg;
		dep.mode = i % 2 ? KTRT_OUT : KTRT_IN;
		if (ktrt_spawn_attr(count_task, NULL, &attr))
			return -ENOMEM;
	}
	return ktrt_wait();
}

static void ten_million_tasks_fit(void **state)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(ktrt_run(make_many, (void *)4096), 0);
	assert_int_equal(get(ran), MANY);
	assert_int_equal(ktrt_info_get(&info), 0);
	printf("# %zu KiB\n", info.memory_bytes >> 10);
	assert_true(info.memory_bytes < 64u << 20);
	assert_int_equal(ktrt_stop(), 0);
}

/* Half a second in which at most a thousandth may be used. */
static bool uses_no_cpu(void)
{
	uint64_t before = ktest_cpu_ns();

	nap_us(500000);
	return ktest_cpu_ns() - before < 500000;
}

static void idle_runtimes_use_no_cpu(void)
{
	assert_int_equal(ktrt_spawn(count_task, NULL), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_true(holds_soon(uses_no_cpu()));
}

static void rests_in_all_ways(void **state)
{
	if (KTEST_TSAN || KTEST_ASAN)
		ktest_skip("the sanitizers have threads of their own");
	in_each_way(idle_runtimes_use_no_cpu);
}

static int use_all(unsigned long *nr)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep deps[6];
	char big[200] = { 0 };

	for (int i = 0; i < 6; i++) {
		deps[i].addr = &deps[i];
		deps[i].len = i % 2 ? sizeof(deps[0]) : 0;
		deps[i].mode = KTRT_INOUT;
	}
	attr.deps = deps;
	attr.nr_deps = 6;
	attr.arg_bytes = sizeof(big);
	for (int i = 0; i < 10; i++) {
		attr.priority = i % 3;
		*nr += !ktrt_spawn_attr(count_task, big, &attr);
		*nr += !ktrt_spawn(count_task, NULL);
	}
	return ktrt_wait();
}

static unsigned long closed_wrongly;

/* What is not open may be somebody else's file a moment later. */
int close(int fd)
{
	int error = (int)syscall(SYS_close, fd);

	if (error)
		more(closed_wrongly);
	return error;
}

/* Refuse the allocation of index @i, or all from it on. */
static void lose_nothing(unsigned int i, bool all)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	unsigned long nr = 0;
	int error;

	set(ran, 0);
	all ? failalloc_arm_from(i, FAILALLOC_ALL) : failalloc_arm(i);
	options.flags = i % 2 ? KTRT_UMT_FIRST : 0;
	error = ktrt_start(&options);
	if (!error) {
		use_all(&nr);
		error = ktrt_stop();
	}
	failalloc_disarm();
	assert_int_equal(get(ran), nr);
	assert_true(!error || error == -ENOMEM || error == -EAGAIN);
	assert_int_equal(get(closed_wrongly), 0);
}

static void no_task_is_lost_without_memory(void **state)
{
	static const char *const backends[] = { "bpf", "perf", "explicit" };
	size_t k;
	unsigned int i;

	if (KTEST_TSAN)
		ktest_skip("thread sanitizer ends when threads are refused");
	for (k = 0; k < KTEST_ARRAY_SIZE(backends); k++) {
		setenv("UMT_BACKEND", backends[k], 1);
		for (i = 1; i <= 40; i++)
			lose_nothing(i, false);
		for (i = 1; i <= 40; i++)
			lose_nothing(i, true);
	}
	unsetenv("UMT_BACKEND");
}

KTEST_MAIN(KTEST(ten_million_tasks_fit), KTEST(rests_in_all_ways),
	   KTEST(no_task_is_lost_without_memory))
