/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks that do nothing are left to the worker that makes them, which does
 * them faster alone: another one that did a few of them rests.  Those that take
 * a while are shared as ever.
 */
#include "support/runs.h"

#define MANY 60000ul
#define LONG_NS 20000000000
#define WORK_NS 20000
/* A worker looks whether to rest after so many, and then rests so long. */
#define ROW 16
#define REST_NS 4000
/* Tasks that take twice as long are no trifles. */
#define SHORT_NS 100
#define ROWS_WANTED 100

/* Two workers write them: on one cache line they would be no trifles. */
static _Alignas(64) unsigned long own;
static _Alignas(64) unsigned long foreign;
static _Alignas(64) int maker;
static uint64_t began_ns[MANY], took_ns[MANY]; /* the other worker's */

static int note_time(void *arg)
{
	uint64_t began = ktest_now_ns();
	unsigned long i;

	if (ktrt_worker() == maker) {
		more(own);
		return 0;
	}
	i = more(foreign) - 1;
	began_ns[i] = began;
	took_ns[i] = ktest_now_ns() - began;
	return 0;
}

static int burn_time(void *arg)
{
	uint64_t end = ktest_now_ns() + WORK_NS;

	while (ktest_now_ns() < end)
		;
	more(*(ktrt_worker() == maker ? &own : &foreign));
	return 0;
}

/* Seventeen use a datum in turn: one writes, the others read. */
static int make_fans(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { arg, 0, KTRT_INOUT };

	maker = ktrt_worker();
	attr.deps = &dep;
	attr.nr_deps = 1;
	for (unsigned long i = 0; i < MANY; i++) {
		dep.mode = i % 17 ? KTRT_IN : KTRT_INOUT;
		if (ktrt_spawn_attr(note_time, NULL, &attr))
			return -ENOMEM;
	}
	return ktrt_wait();
}

static int make_work(void *arg)
{
	maker = ktrt_worker();
	for (int i = 0; i < 400; i++)
		if (ktrt_spawn(burn_time, NULL))
			return -ENOMEM;
	return ktrt_wait();
}

static void start_runtime(void)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_info info = KTRT_INFO_INIT;

	options.workers = 2;
	assert_int_equal(ktrt_start(&options), 0);
	assert_int_equal(ktrt_info_get(&info), 0);
	if (info.workers >= 2)
		return;
	assert_int_equal(ktrt_stop(), 0);
	ktest_skip("one worker shares with nobody");
}

/* Were they such as a worker leaves to their maker?  Not where the machine is slow,
 * or another one has its caches. */
static bool were_short(const uint64_t *took)
{
	uint64_t sum = 0;

	for (int i = 0; i < ROW; i++)
		sum += took[i];
	return sum < ROW * SHORT_NS;
}

/* Did it rest among ROW that it did one after another? */
static bool has_rested(const uint64_t *began)
{
	for (int i = 0; i < ROW; i++)
		if (began[i + 1] - began[i] >= REST_NS)
			return true;
	return false;
}

/*
 * Counts rows of short tasks that the other worker did, and those in which it
 * rested.  Whatever else the machine does makes pauses longer, not shorter; it
 * may take a core away altogether, so that there are no such rows.
 */
static void count_rows(unsigned long *rows, unsigned long *with_rest)
{
	uint64_t until = ktest_now_ns() + LONG_NS;

	while (*rows < ROWS_WANTED && ktest_now_ns() < until) {
		set(own, 0);
		set(foreign, 0);
		assert_int_equal(ktrt_run(make_fans, &own), 0);
		assert_int_equal(get(own) + get(foreign), MANY);
		for (unsigned long i = 0; i + ROW < get(foreign); i += ROW) {
			if (!were_short(&took_ns[i]))
				continue;
			++*rows;
			*with_rest += has_rested(&began_ns[i]);
		}
		printf("# its own %lu, others' %lu; rows %lu, with a rest "
		       "%lu\n",
		       get(own), get(foreign), *rows, *with_rest);
	}
}

static void short_tasks_are_left(void **state)
{
	unsigned long rows = 0, with_rest = 0;

	if (KTEST_TSAN || KTEST_ASAN)
		ktest_skip("sanitizers give every task some work");
	if (clock_step_ns() > SHORT_NS / 2)
		ktest_skip("the clock takes as long as a task with work");
	start_runtime();
	memset(began_ns, 1, sizeof(began_ns));
	memset(took_ns, 1, sizeof(took_ns));
	count_rows(&rows, &with_rest);
	assert_int_equal(ktrt_stop(), 0);
	if (rows < ROWS_WANTED)
		ktest_skip("no core for the other worker, or no trifles here");
	assert_true(with_rest * 2 > rows);
}

static void work_is_shared(void **state)
{
	uint64_t until = ktest_now_ns() + LONG_NS;

	start_runtime();
	set(foreign, 0);
	while (get(foreign) < 50 && ktest_now_ns() < until)
		assert_int_equal(ktrt_run(make_work, NULL), 0);
	assert_true(get(foreign) >= 50);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(short_tasks_are_left), KTEST(work_is_shared))
