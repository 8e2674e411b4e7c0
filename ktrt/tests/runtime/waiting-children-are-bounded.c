/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task has hardly more incomplete children than max_children, also if they
 * all wait for one that blocks: then only few more in some time.
 */
#include "support/runs.h"

#define MOST 256
#define MANY 5000ul
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

/* The first one is held, the others read what it writes. */
static int make_children(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &ran, 0, KTRT_OUT };
	int error;

	attr.deps = &dep;
	attr.nr_deps = 1;
	begin_ns = ktest_now_ns();
	error = ktrt_spawn_attr(block_task, NULL, &attr);
	dep.mode = KTRT_IN;
	for (unsigned long i = 0; i < MANY && !error; i++) {
		error = ktrt_spawn_attr(count_task, NULL, &attr);
		more(made);
	}
	return error ? error : ktrt_wait();
}

static void are_bounded(unsigned flags)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	unsigned long nr = 0, most = 0;

	options.flags = flags;
	options.max_children = MOST;
	set(made, 0);
	set(ran, 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(ktrt_start(&options), 0);
	assert_int_equal(ktrt_spawn(make_children, NULL), 0);
	assert_true(holds_soon(get(made) >= MOST));
	for (int i = 0; i < 50 && nr <= most; i++) {
		nap_us(1000);
		nr = get(made);
		most = MOST + CHECK_EVERY +
		       2 * CHECK_EVERY *
			       ((ktest_now_ns() - begin_ns) / PASS_NS + 1);
	}
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(ktrt_wait(), 0);
	printf("# %lu made, at most %lu expected\n", nr, most);
	assert_true(nr <= most);
	assert_int_equal(get(ran), MANY);
	assert_int_equal(ktrt_stop(), 0);
	close(ends[0]);
	close(ends[1]);
}

static void children_of_tasks_are_bounded(void **state)
{
	are_bounded(0);
	are_bounded(KTRT_NO_UMT);
}

KTEST_MAIN(KTEST(children_of_tasks_are_bounded))
