/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When all workers have slept for some time UMT's program is attached to nothing but the
 * end of tasks, so others pay nothing for it at their context switches; when tasks come it
 * is, and knows as before who is blocked.
 */
#include "support/runs.h"
#include "bpf_links.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/rt.h"

static unsigned ran;

/* false: there is no UMT here that could rest. */
static bool start_with_umt(const struct way *way)
{
	if (way->flags & (KTRT_NO_UMT | KTRT_UNBOUND))
		return false;
	start_way(way);
	assert_true(holds_soon(strcmp(backend_in_use(), "loading")));
	if (!strcmp(backend_in_use(), "bpf") &&
	    (at_load(&rt.resting) || nr_bpf_links()))
		return true;
	assert_int_equal(ktrt_stop(), 0);
	return false;
}

static int nap_task(void *arg)
{
	nap_us((long)arg);
	more(ran);
	return 0;
}

static int spin_task(void *arg)
{
	uint64_t until = ktest_now_ns() + (uint64_t)(long)arg * 1000;

	while (ktest_now_ns() < until)
		;
	more(ran);
	return 0;
}

static bool umt_works(void)
{
	return at_load(&rt.counts) && !at_load(&rt.resting);
}

/* By what UMT knows now, or knew when it was told to rest. */
static bool none_ready(void)
{
	for (unsigned i = 0; i < rt.nr_cores; i++)
		if (umt_ready(umt_cores(rt.umt), rt.cores[i].cpu))
			return false;
	return true;
}

static void comes_and_goes(const struct way *way)
{
	if (!start_with_umt(way))
		return;
	if (at_load(&rt.never_rests))
		goto out;
	for (int round = 0; round < 3; round++) {
		assert_true(holds_soon(at_load(&rt.resting)));
		assert_true(holds_soon(nr_bpf_links() <= LINKS_AT_REST ||
				       at_load(&rt.never_rests)));
		if (at_load(&rt.never_rests))
			break;
		assert_string_equal(backend_in_use(), "bpf");
		/* As long as it takes: tasks that work, and that block. */
		while (!umt_works()) {
			for (int i = 0; i < 8; i++)
				assert_int_equal(
					ktrt_spawn(i % 2 ? nap_task : spin_task,
						   (void *)2000),
					0);
			assert_int_equal(ktrt_wait(), 0);
		}
		/* Or this thread stood so long that it rests again, which is
		 * known before the first link goes. */
		assert_true(nr_bpf_links() > LINKS_AT_REST ||
			    at_load(&rt.resting));
	}
out:
	assert_int_equal(ktrt_stop(), 0);
	assert_int_equal(nr_bpf_links(), 0);
}

static void umt_comes_and_goes(void **state)
{
	for (size_t i = 0; i < NR_WAYS; i++)
		comes_and_goes(&all_ways[i]);
}

/* Just when it begins to rest, or ends that. */
static void bursts_meet_every_moment(void **state)
{
	uint64_t random = ktest_seed();
	int rounds = KTEST_TSAN || KTEST_ASAN ? 15 : 40;

	for (size_t way = 0; way < NR_WAYS; way++) {
		if (!start_with_umt(&all_ways[way]))
			continue;
		__atomic_store_n(&rt.rest_after_ns, 1000000, __ATOMIC_RELAXED);
		for (int i = 0; i < rounds; i++) {
			unsigned nr = (unsigned)ktest_random_below(&random, 30);

			set(ran, 0);
			for (unsigned j = 0; j < nr; j++)
				assert_int_equal(
					ktrt_spawn(
						ktest_random_below(&random, 2)
							? nap_task
							: spin_task,
						(void *)(long)
							ktest_random_below(
								&random, 2000)),
					0);
			assert_int_equal(ktrt_wait(), 0);
			assert_int_equal(get(ran), nr);
			nap_us((long)ktest_random_below(&random, 20) * 1000);
		}
		assert_true(holds_soon(at_load(&rt.resting) ||
				       at_load(&rt.never_rests)));
		assert_true(holds_soon(none_ready()));
		assert_int_equal(ktrt_stop(), 0);
		assert_int_equal(nr_bpf_links(), 0);
	}
}

#define ROUNDS 3
#define ROUND_NS 5000000000

/* Just when it begins to rest, or ends that, too. */
static void is_named_throughout(const struct way *way)
{
	if (!start_with_umt(way))
		return;
	__atomic_store_n(&rt.rest_after_ns, 1000000, __ATOMIC_RELAXED);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t until = ktest_now_ns() + ROUND_NS;

		for (int i = 0; i < 8; i++)
			assert_int_equal(ktrt_spawn(spin_task, (void *)5000),
					 0);
		assert_int_equal(ktrt_wait(), 0);
		while (ktest_now_ns() < until && !at_load(&rt.never_rests) &&
		       !(at_load(&rt.resting) &&
			 nr_bpf_links() <= LINKS_AT_REST))
			for (int i = 0; i < 100; i++)
				assert_string_equal(backend_in_use(), "bpf");
	}
	assert_int_equal(ktrt_stop(), 0);
}

static void umt_is_named_throughout(void **state)
{
	for (size_t i = 0; i < NR_WAYS; i++)
		is_named_throughout(&all_ways[i]);
}

KTEST_MAIN(KTEST(umt_comes_and_goes), KTEST(umt_is_named_throughout),
	   KTEST(bursts_meet_every_moment))
