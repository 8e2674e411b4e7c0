/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What registering with an RDMA device takes, by plain calls and by ktask_register()
 * with two threads, as one region and as many, of absent memory and of memory that is
 * present.  The sides take turns, KTASK_BENCH_ROUNDS times or once.  The verdict is that
 * all was registered; times are comments.
 */
#include <dlfcn.h>
#include <ktask/register.h>
#include <string.h>
#include <sys/mman.h>

#include "counts.h"
#include "verbs.h"

#define MR_BYTES (8 * MIB)
#define NR_REGIONS 32
#define LEN (NR_REGIONS * MR_BYTES)
#define THREADS 2
#define MAX_ROUNDS 101

struct side {
	const char *name;
	size_t nr; /* regions */
	bool plain;
};

/* Ratios are those of the first. */
static const struct side sides[] = {
	{ "one region, plain", 1, true },
	{ "one region, ktask_register()", 1, false },
	{ "32 regions, plain", NR_REGIONS, true },
	{ "32 regions, ktask_register()", NR_REGIONS, false },
};

#define NR_SIDES KTEST_ARRAY_SIZE(sides)

static struct ibv_pd *pd;
static struct ibv_mr *regions[NR_REGIONS];
static struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
static int (*dereg_mr)(struct ibv_mr *);

static double run_plain(char *at, size_t nr)
{
	size_t len = LEN / nr;
	uint64_t begin_ns = ktest_now_ns();
	double seconds;

	for (size_t i = 0; i < nr; i++)
		regions[i] = reg_mr(pd, at + i * len, len, VERBS_LOCAL_WRITE);
	seconds = (double)(ktest_now_ns() - begin_ns) / 1e9;
	assert_int_equal(verbs_count("mr"), nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(dereg_mr(regions[i]), 0);
	return seconds;
}

static double run_ktask(char *at, size_t nr)
{
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ktask_verbs verbs = KTASK_VERBS_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_registration *registration;
	uint64_t begin_ns = ktest_now_ns();
	double seconds;

	verbs.pd = pd;
	verbs.access = VERBS_LOCAL_WRITE;
	verbs.addr = at;
	verbs.mr_bytes = LEN / nr;
	verbs.mrs = regions;
	verbs.nr_mrs = nr;
	opts.max_threads = THREADS;
	assert_int_equal(ktask_register_verbs(&ctl, &verbs), 0);
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, &opts),
			 0);
	seconds = (double)(ktest_now_ns() - begin_ns) / 1e9;
	assert_int_equal(verbs_count("mr"), nr);
	ktask_registration_info_get(registration, &info);
	printf("# time: the longest of %llu calls: %.1f ms\n",
	       (unsigned long long)info.pieces, (double)info.longest_ns / 1e6);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	return seconds;
}

static double run_side(const struct side *side, bool present)
{
	char *at = map_absent(LEN);
	double seconds;

	if (present)
		memset(at, 1, LEN);
	if (side->plain)
		seconds = run_plain(at, side->nr);
	else
		seconds = run_ktask(at, side->nr);
	assert_int_equal(verbs_count("mr"), 0);
	munmap(at, LEN);
	return seconds;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_of(double *numbers, unsigned nr)
{
	qsort(numbers, nr, sizeof(*numbers), compare);
	return numbers[nr / 2];
}

static void time_sides(bool present)
{
	const char *asked = getenv("KTASK_BENCH_ROUNDS");
	unsigned rounds = asked ? (unsigned)atoi(asked) : 1;
	static double seconds[NR_SIDES][MAX_ROUNDS];
	static double ratios[NR_SIDES][MAX_ROUNDS];

	assert_true(rounds > 0 && rounds <= MAX_ROUNDS);
	for (unsigned i = 0; i < rounds * NR_SIDES; i++) {
		unsigned round = i / NR_SIDES;
		unsigned side = (i + round) % NR_SIDES;

		seconds[side][round] = run_side(&sides[side], present);
	}
	for (unsigned i = 0; i < rounds * NR_SIDES; i++)
		ratios[i % NR_SIDES][i / NR_SIDES] =
			seconds[0][i / NR_SIDES] /
			seconds[i % NR_SIDES][i / NR_SIDES];
	for (unsigned side = 0; side < NR_SIDES; side++)
		printf("# time: %zu MiB, %s, %s: %.1f ms, %.2f times as fast\n",
		       LEN / MIB, present ? "present" : "absent",
		       sides[side].name, median_of(seconds[side], rounds) * 1e3,
		       median_of(ratios[side], rounds));
}

static void absent_memory_is_registered_each_way(void **state)
{
	(void)state;
	time_sides(false);
}

static void present_memory_is_registered_each_way(void **state)
{
	(void)state;
	time_sides(true);
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
