/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task or an attached thread has hardly more incomplete children than max_children, also
 * if they all wait for one that blocks, or for a thread: then only few more in some time.
 */
#include "support/runs.h"

#include <pthread.h>

#define MOST 256
#define MANY 5000ul
#define THREADS 2
/* The runtime looks at each so many children. */
#define CHECK_EVERY 64
/* In so much time it lets two of these pass at most. */
#define PASS_NS 20000000

static int ends[2]; /* of a pipe */
static unsigned long made, ran;
static uint64_t begin_ns;

static int block_task(void *arg)
{
	char byte;

	return read(ends[0], &byte, 1) == 1 ? 0 : -EIO;
}

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

/* What never counts as brief, so that its maker leaves it to workers. */
static ktrt_func counts = count_task;

static int spawn_on(ktrt_func func, void *arg, const void *addr, unsigned mode)
{
	const struct ktrt_dep dep = { addr, 0, mode };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	return ktrt_spawn_attr(func, arg, &attr);
}

/* The first one is held, the others read what it writes. */
static int make_held(void *arg)
{
	int error = spawn_on(block_task, NULL, &ran, KTRT_OUT);

	for (unsigned long i = 0; i < MANY && !error; i++) {
		error = spawn_on(count_task, NULL, &ran, KTRT_IN);
		more(made);
	}
	return error ? error : ktrt_wait();
}

/* The same, with a wait for data that nobody uses before each 64th. */
static int make_between_waits(void *arg)
{
	const struct ktrt_dep other = { &made, 0, KTRT_IN };
	int error = spawn_on(block_task, NULL, &ran, KTRT_OUT);

	for (unsigned long i = 0; i < MANY && !error; i++) {
		if (i % CHECK_EVERY == CHECK_EVERY - 2)
			error = ktrt_wait_for(&other, 1);
		if (!error)
			error = spawn_on(count_task, NULL, &ran, KTRT_IN);
		more(made);
	}
	return error ? error : ktrt_wait();
}

/* The first ones have all threads, the others are ready. */
static int make_ready(void *arg)
{
	int error = 0;

	for (int i = 0; i < THREADS && !error; i++)
		error = ktrt_spawn(block_task, NULL);
	for (unsigned long i = 0; i < MANY && !error; i++) {
		error = ktrt_spawn(ktrt_dispatch, &counts);
		more(made);
	}
	return error ? error : ktrt_wait();
}

/* By a thread of its own, because the test's watches it. */
static void *make_attached(void *maker)
{
	int error = ktrt_attach();

	if (!error)
		error = (*(ktrt_func *)maker)(NULL);
	return (void *)(intptr_t)(error ? error : ktrt_detach());
}

static uint64_t now_allowed(void)
{
	uint64_t passes = (ktest_now_ns() - begin_ns) / PASS_NS + 1;

	return MOST + CHECK_EVERY + 2 * CHECK_EVERY * passes;
}

static void watch_maker(void)
{
	unsigned long nr = 0, most = 0;

	assert_true(holds_soon(get(made) >= MOST));
	for (int i = 0; i < 50 && nr <= most; i++) {
		nap_us(1000);
		nr = get(made);
		most = now_allowed();
	}
	printf("# %lu made, at most %lu expected\n", nr, most);
	assert_true(nr <= most);
}

static void start_with(unsigned max_threads, unsigned flags)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.flags = flags;
	options.max_children = MOST;
	options.max_threads = max_threads;
	set(made, 0);
	set(ran, 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(ktrt_start(&options), 0);
	begin_ns = ktest_now_ns();
}

static void stop_all(void)
{
	assert_int_equal(get(ran), MANY);
	assert_int_equal(ktrt_stop(), 0);
	close(ends[0]);
	close(ends[1]);
}

static void release_all(void)
{
	assert_int_equal(write(ends[1], "xx", THREADS), THREADS);
}

static void children_of_tasks_are_bounded(void **state)
{
	static const ktrt_func makers[] = { make_held, make_between_waits };

	for (size_t i = 0; i < 4; i++) {
		start_with(0, i % 2 ? KTRT_NO_UMT : 0);
		assert_int_equal(ktrt_spawn(makers[i / 2], NULL), 0);
		watch_maker();
		release_all();
		assert_int_equal(ktrt_wait(), 0);
		stop_all();
	}
}

static void those_of_attached_threads_are_bounded(void **state)
{
	static ktrt_func makers[] = { make_held, make_between_waits,
				      make_ready };
	pthread_t thread;
	void *error;

	for (size_t i = 0; i < 6; i++) {
		start_with(makers[i / 2] == make_ready ? THREADS : 0,
			   i % 2 ? KTRT_NO_UMT : 0);
		assert_int_equal(pthread_create(&thread, NULL, make_attached,
						&makers[i / 2]),
				 0);
		watch_maker();
		release_all();
		pthread_join(thread, &error);
		assert_null(error);
		stop_all();
	}
}

KTEST_MAIN(KTEST(children_of_tasks_are_bounded),
	   KTEST(those_of_attached_threads_are_bounded))
