/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Many threads run jobs at once, also nested, on far too few helpers: each
 * job ends with all of its units done, and no outermost job ever has more
 * threads in its chunks than it may have.
 */
#include "support/work.h"

#define MANY_CPUS 12
#include "support/many_cpus.h"

#define NR_CALLERS 16
#define NR_JOBS (KTEST_TSAN || KTEST_ASAN ? 20 : 60)
#define NR_UNITS 60

/* An outermost job and all below it. */
struct family {
	unsigned most; /* threads allowed */
	uint32_t threads, too_many, nr_bad;
};

static __thread unsigned nesting;

static void enter_family(struct family *family)
{
	uint32_t threads;

	if (nesting++)
		return;
	threads = __atomic_add_fetch(&family->threads, 1, __ATOMIC_SEQ_CST);
	if (threads > family->most)
		__atomic_add_fetch(&family->too_many, 1, __ATOMIC_RELAXED);
}

static void leave_family(struct family *family)
{
	if (!--nesting)
		__atomic_sub_fetch(&family->threads, 1, __ATOMIC_SEQ_CST);
}

static int do_leaf(struct work *work, size_t from, size_t to)
{
	enter_family(work->arg);
	burn_us(1);
	leave_family(work->arg);
	return 0;
}

static void run_below(struct family *family, work_also_fn *also)
{
	struct work work = { .also = also, .arg = family };

	work_begin(&work, NR_UNITS);
	if (work_run(&work) || !work_done_once(&work))
		__atomic_add_fetch(&family->nr_bad, 1, __ATOMIC_RELAXED);
	work_end(&work);
}

static int do_branch(struct work *work, size_t from, size_t to)
{
	struct family *family = work->arg;

	enter_family(family);
	if (from % 8 == 0)
		run_below(family, do_leaf);
	leave_family(family);
	return 0;
}

static int do_trunk(struct work *work, size_t from, size_t to)
{
	struct family *family = work->arg;

	enter_family(family);
	if (from % 16 == 0)
		run_below(family, do_branch);
	leave_family(family);
	return 0;
}

/* Return: whether all went well. */
static bool run_family(unsigned most, work_also_fn *also)
{
	struct family family = { .most = most ? most : MANY_CPUS };
	struct work work = { .also = also, .arg = &family };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	bool well;

	work_begin(&work, NR_UNITS);
	ktask_ctl_set_max_threads(&ctl, most);
	well = !ktask_run(WORK_BASE, NR_UNITS, &ctl) && work_done_once(&work);
	work_end(&work);
	return well && !family.too_many && !family.nr_bad && !family.threads;
}

static void *run_caller(void *arg)
{
	static work_also_fn *const kinds[] = { do_leaf, do_branch, do_trunk };
	uint64_t seed = ktest_seed() + (uintptr_t)arg;
	uintptr_t nr_bad = 0;

	for (int i = 0; i < NR_JOBS; i++) {
		unsigned most = (unsigned)ktest_random_below(&seed, 5);

		nr_bad +=
			!run_family(most, kinds[ktest_random_below(&seed, 3)]);
	}
	return (void *)nr_bad;
}

static void all_at_once(void **state)
{
	pthread_t threads[NR_CALLERS];
	void *nr_bad;

	ktest_seed();
	for (uintptr_t i = 0; i < NR_CALLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_caller,
						(void *)i),
				 0);
	for (int i = 0; i < NR_CALLERS; i++) {
		assert_int_equal(pthread_join(threads[i], &nr_bad), 0);
		assert_ptr_equal(nr_bad, NULL);
	}
}

static void one_caller_nests(void **state)
{
	for (int i = 0; i < NR_JOBS; i++)
		assert_true(run_family((unsigned)i % 6, do_trunk));
}

KTEST_MAIN(KTEST(one_caller_nests), KTEST(all_at_once))
