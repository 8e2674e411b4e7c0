/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * uffd fill: the function that is asked for bytes may call the library, in the caller
 * and in helpers: populate memory of its own, run a job, and fill another range.
 */
#include "ktest.h"

#include <ktask/ops.h>

#include "uffd.h"

#define LEN (8 * MIB)
#define INNER_LEN (2 * MIB)

static _Atomic unsigned nr_wrong, nr_units;

static int give_words(void *buf, size_t len, uint64_t offset, void *arg)
{
	uffd_words(buf, len, offset);
	return 0;
}

static int count_units(void *start, void *end, void *arg)
{
	nr_units += (unsigned)((char *)end - (char *)start);
	return 0;
}

static void populate_own(void)
{
	char *at = map_private(INNER_LEN);

	nr_wrong += ktask_populate(at, INNER_LEN, 0) != 0 ||
		    !pages_present(at, INNER_LEN);
	munmap(at, INNER_LEN);
}

static void run_job(void)
{
	DEFINE_KTASK_CTL(ctl, count_units, NULL, 1);
	unsigned before = nr_units;

	/* Others count as well. */
	nr_wrong += ktask_run((void *)4096, 1000, &ctl) != 0 ||
		    nr_units - before < 1000;
}

static void fill_other(void)
{
	struct ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;

	fill.addr = map_private(INNER_LEN);
	fill.len = INNER_LEN;
	fill.uffd = uffd_open(0);
	fill.source_func = give_words;
	nr_wrong += fill.uffd < 0 ||
		    !uffd_register(fill.uffd, fill.addr, INNER_LEN) ||
		    ktask_uffd_fill(&fill, NULL) != 0 ||
		    uffd_wrong(fill.addr, INNER_LEN, 0) != SIZE_MAX;
	close(fill.uffd);
	munmap(fill.addr, INNER_LEN);
}

/* Each call one of them: they are some hundred. */
static int call_and_give(void *buf, size_t len, uint64_t offset, void *arg)
{
	static _Atomic unsigned nr_calls;

	switch (nr_calls++ % 3) {
	case 0:
		populate_own();
		break;
	case 1:
		run_job();
		break;
	default:
		fill_other();
	}
	return give_words(buf, len, offset, arg);
}

static void sources_may_call_the_library(void **state)
{
	struct ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;

	need_uffd();
	for (unsigned threads = 1; threads <= 3; threads++) {
		struct ktask_opts opts = KTASK_OPTS_INIT;
		char *at = map_private(LEN);

		fill.addr = at;
		fill.len = LEN;
		fill.uffd = uffd_open(0);
		fill.source_func = call_and_give;
		opts.max_threads = threads;
		assert_true(uffd_register(fill.uffd, at, LEN));
		assert_int_equal(ktask_uffd_fill(&fill, &opts), 0);
		assert_int_equal(nr_wrong, 0);
		assert_int_equal(uffd_wrong(at, LEN, 0), SIZE_MAX);
		close(fill.uffd);
		munmap(at, LEN);
	}
}

KTEST_MAIN(KTEST(sources_may_call_the_library))
