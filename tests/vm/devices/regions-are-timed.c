/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What registering with an RDMA device takes, by plain calls and by ktask_register()
 * with two threads, as one region and as many, of absent memory and of memory that is
 * present.  The verdict is that all was registered.
 *
 * What two bare threads reach is the bound of what a library can: they make the pages of
 * one region by halves before its call, or register half of the regions each.
 */
#include <dlfcn.h>
#include <ktask/register.h>
#include <pthread.h>

#include "side_times.h"
#include "verbs.h"

#define NR_REGIONS 32
#define THREADS 2

static struct ibv_pd *pd;
static struct ibv_mr *regions[NR_REGIONS];
static struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
static int (*dereg_mr)(struct ibv_mr *);

/* Little, unless somebody asked for times. */
static size_t region_bytes(void)
{
	return getenv("KTASK_BENCH_ROUNDS") ? 8 * MIB : MIB / 2;
}

static struct side_time run_plain(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns(), last_ns = begin_ns, now_ns;
	struct side_time took = { 0 };

	for (size_t i = 0; i < nr; i++) {
		regions[i] = reg_mr(pd, at + i * (len / nr), len / nr,
				    VERBS_LOCAL_WRITE);
		now_ns = ktest_now_ns();
		if ((double)(now_ns - last_ns) / 1e9 > took.longest)
			took.longest = (double)(now_ns - last_ns) / 1e9;
		last_ns = now_ns;
	}
	took.seconds = (double)(last_ns - begin_ns) / 1e9;
	assert_int_equal(verbs_count("mr"), nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(dereg_mr(regions[i]), 0);
	assert_int_equal(verbs_count("mr"), 0);
	return took;
}

/* ---- two bare threads ---- */

struct half {
	char *at;
	size_t len; /* of all regions */
	size_t first, nr; /* regions */
};

static void *make_half(void *arg)
{
	const struct half *half = arg;

	ktest_check(!madvise(half->at, half->len, MADV_POPULATE_WRITE));
	return NULL;
}

static void *register_half(void *arg)
{
	const struct half *half = arg;
	size_t each = half->len / half->nr;

	for (size_t i = 0; i < half->nr; i++) {
		regions[half->first + i] = reg_mr(pd, half->at + i * each, each,
						  VERBS_LOCAL_WRITE);
		ktest_check(regions[half->first + i]);
	}
	return NULL;
}

static void run_halves(char *at, size_t len, size_t nr,
		       void *(*work)(void *half))
{
	struct half halves[2] = {
		{ at, len / 2, 0, nr / 2 },
		{ at + len / 2, len / 2, nr / 2, nr / 2 },
	};
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, work, &halves[1]), 0);
	work(&halves[0]);
	assert_int_equal(pthread_join(other, NULL), 0);
}

static struct side_time run_by_halves(char *at, size_t len, size_t nr)
{
	uint64_t begin_ns = ktest_now_ns(), called_ns = begin_ns;
	struct side_time took;

	if (nr > 1) {
		run_halves(at, len, nr, register_half);
	} else {
		run_halves(at, len, nr, make_half);
		called_ns = ktest_now_ns();
		regions[0] = reg_mr(pd, at, len, VERBS_LOCAL_WRITE);
	}
	took.longest = (double)(ktest_now_ns() - called_ns) / 1e9;
	took.seconds = (double)(ktest_now_ns() - begin_ns) / 1e9;
	assert_int_equal(verbs_count("mr"), nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(dereg_mr(regions[i]), 0);
	assert_int_equal(verbs_count("mr"), 0);
	return took;
}

/* ---- ktask ---- */

static struct side_time run_ktask(char *at, size_t len, size_t nr)
{
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ktask_verbs verbs = KTASK_VERBS_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_registration *registration;
	uint64_t begin_ns = ktest_now_ns();
	struct side_time took;

	verbs.pd = pd;
	verbs.access = VERBS_LOCAL_WRITE;
	verbs.addr = at;
	verbs.mr_bytes = len / nr;
	verbs.mrs = regions;
	verbs.nr_mrs = nr;
	opts.max_threads = THREADS;
	assert_int_equal(ktask_register_verbs(&ctl, &verbs), 0);
	assert_int_equal(ktask_register(&registration, at, len, &ctl, &opts),
			 0);
	took.seconds = (double)(ktest_now_ns() - begin_ns) / 1e9;
	assert_int_equal(verbs_count("mr"), nr);
	ktask_registration_info_get(registration, &info);
	took.longest = (double)info.longest_ns / 1e9;
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_int_equal(verbs_count("mr"), 0);
	return took;
}

static const struct timed_side sides[] = {
	{ "one region, plain", run_plain, 1 },
	{ "one region, two bare threads", run_by_halves, 1 },
	{ "one region, ktask_register()", run_ktask, 1 },
	{ "32 regions, plain", run_plain, NR_REGIONS },
	{ "32 regions, two bare threads", run_by_halves, NR_REGIONS },
	{ "32 regions, ktask_register()", run_ktask, NR_REGIONS },
};

static void absent_memory_is_registered_each_way(void **state)
{
	(void)state;
	time_sides(sides, KTEST_ARRAY_SIZE(sides), NR_REGIONS * region_bytes(),
		   false);
}

static void present_memory_is_registered_each_way(void **state)
{
	(void)state;
	time_sides(sides, KTEST_ARRAY_SIZE(sides), NR_REGIONS * region_bytes(),
		   true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(absent_memory_is_registered_each_way),
		KTEST(present_memory_is_registered_each_way),
	};
	void *library = dlopen("libibverbs.so.1", RTLD_NOW);

	ktest_check(library);
	*(void **)&reg_mr = dlsym(library, "ibv_reg_mr");
	*(void **)&dereg_mr = dlsym(library, "ibv_dereg_mr");
	ktest_check(reg_mr && dereg_mr);
	pd = verbs_open();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
