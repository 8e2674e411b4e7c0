/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Any number of tasks may follow a writer, made before it ends, while it does and after:
 * readers, commuting tasks and those that add.  None begins before the writer has ended,
 * and the next writer not before all of them have.  If the writer fails they are skipped.
 * What lists those that wait is used again.
 */
#include "support/runs.h"

#define MOST 40
#define ROUNDS (KTEST_TSAN || KTEST_ASAN ? 3 : 40)
#define SPINS 2000

static unsigned long datum, sum; /* plain: dependences order them */
static unsigned readers, wrong;

static void spin_for(unsigned long times)
{
	while (times--)
		__asm__ volatile("" ::: "memory");
}

/* @arg: for how long.  All that came after the writer before have ended. */
static int write_it(void *arg)
{
	spin_for((uintptr_t)arg);
	datum++;
	set(readers, 0);
	sum = 0;
	return 0;
}

/* @arg: how many have written. */
static int read_it(void *arg)
{
	if (datum != (uintptr_t)arg)
		more(wrong);
	more(readers);
	return 0;
}

static int change_it(void *arg)
{
	sum++;
	return read_it(arg);
}

static void add_long(void *into, void *from, void *arg)
{
	*(unsigned long *)into += *(const unsigned long *)from;
}

static struct ktrt_reduction adding = {
	.struct_size = sizeof(adding),
	.data = &sum,
	.bytes = sizeof(sum),
	.combine = add_long,
};

static int add_to_it(void *arg)
{
	unsigned long *copy = ktrt_reduction_copy(&adding);

	if (!copy)
		return -ENOMEM;
	++*copy;
	return read_it(arg);
}

/* @arg: how many there were. */
static int check_it(void *arg)
{
	if (get(readers) != (uintptr_t)arg)
		more(wrong);
	return 0;
}

static int check_sum(void *arg)
{
	if (sum != (uintptr_t)arg)
		more(wrong);
	return check_it(arg);
}

static const struct {
	unsigned mode;
	ktrt_func follow, check;
} kinds[] = {
	{ KTRT_IN, read_it, check_it },
	{ KTRT_COMMUTATIVE, change_it, check_sum },
	{ KTRT_REDUCTION, add_to_it, check_sum },
};

static int spawn_with(ktrt_func func, uintptr_t arg, unsigned mode,
		      unsigned flags)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &sum, 0, mode };

	if (mode == KTRT_REDUCTION)
		dep.addr = &adding;
	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.flags = flags;
	return ktrt_spawn_attr(func, (void *)arg, &attr);
}

static int spawn_for(ktrt_func func, uintptr_t arg, unsigned mode)
{
	return spawn_with(func, arg, mode, 0);
}

static int make_all(void *arg)
{
	uint64_t *random = arg;
	int error = 0;

	datum = 0;
	for (uintptr_t i = 0; i < ROUNDS * MOST && !error; i++) {
		size_t kind = i % KTEST_ARRAY_SIZE(kinds);
		uintptr_t nr = ktest_random_below(random, MOST + 1);

		error = spawn_for(write_it, ktest_random_below(random, SPINS),
				  KTRT_OUT);
		for (uintptr_t j = 0; j < nr && !error; j++)
			error = spawn_for(kinds[kind].follow, i + 1,
					  kinds[kind].mode);
		if (!error)
			error = spawn_for(kinds[kind].check, nr, KTRT_INOUT);
	}
	return error ? error : ktrt_wait();
}

static void order_all(void)
{
	static uint64_t random;

	if (!random)
		random = ktest_seed();
	ktest_random(&random);
	assert_int_equal(ktrt_run(make_all, &random), 0);
	assert_int_equal(get(wrong), 0);
}

static void all_follow_their_writer(void **state)
{
	in_each_way(order_all);
}

/* ---- writers that fail ---- */

#define CODE 77

static unsigned long told, ran;

static int fail_it(void *arg)
{
	spin_for((uintptr_t)arg);
	return CODE;
}

static int be_told(void *arg)
{
	spin_for((uintptr_t)arg);
	if (!ktrt_cancelled())
		more(wrong);
	more(told);
	return 0;
}

static int be_skipped(void *arg)
{
	more(wrong);
	return 0;
}

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

/* Those that are told last for a while, so that others follow the writer after it failed. */
static int fail_once(uint64_t *random)
{
	uintptr_t nr = ktest_random_below(random, MOST + 1);
	unsigned long nr_told = get(told), nr_ran = get(ran);
	int error =
		spawn_for(fail_it, ktest_random_below(random, SPINS), KTRT_OUT);

	for (uintptr_t i = 0; i < nr && !error; i++)
		error = i % 3 ? spawn_for(be_skipped, 0, KTRT_IN)
			      : spawn_with(be_told,
					   ktest_random_below(random, SPINS),
					   KTRT_IN, KTRT_ALWAYS);
	if (!error)
		error = spawn_for(be_skipped, 0, KTRT_INOUT);
	if (error || ktrt_wait() != CODE || get(told) - nr_told != (nr + 2) / 3)
		return error ? error : -EIO;
	error = spawn_for(count_task, 0, KTRT_IN);
	if (!error)
		error = ktrt_wait();
	return !error && get(ran) == nr_ran + 1 ? 0 : -EIO;
}

static int fail_often(void *arg)
{
	int error = 0;

	for (int i = 0; i < ROUNDS * MOST && !error; i++)
		error = fail_once(arg);
	return error;
}

static void spoil_all(void)
{
	static uint64_t random;

	if (!random)
		random = ktest_seed();
	ktest_random(&random);
	assert_int_equal(ktrt_run(fail_often, &random), 0);
	assert_int_equal(get(wrong), 0);
}

static void none_reads_what_failed(void **state)
{
	in_each_way(spoil_all);
}

/* ---- memory ---- */

#define WRITERS (KTEST_TSAN || KTEST_ASAN ? 500ul : 20000ul)
#define READERS 60ul
#define BYTES_MOST (4ul << 20)

static int make_many(void *arg)
{
	int error = 0;

	for (unsigned long i = 0; i < WRITERS && !error; i++) {
		error = spawn_for(count_task, 0, KTRT_OUT);
		for (unsigned long j = 0; j < READERS && !error; j++)
			error = spawn_for(count_task, 0, KTRT_IN);
		/* Then the next writer follows none. */
		if (!error && i % 2)
			error = ktrt_wait();
	}
	return error ? error : ktrt_wait();
}

/* A single worker makes thousands before it does any, so readers wait. */
static void lists_are_used_again(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_info info = KTRT_INFO_INIT;

	options.workers = 1;
	assert_int_equal(ktrt_start(&options), 0);
	set(ran, 0);
	assert_int_equal(ktrt_run(make_many, NULL), 0);
	assert_int_equal(get(ran), WRITERS * (READERS + 1));
	assert_int_equal(ktrt_info_get(&info), 0);
	printf("# %zu KiB\n", info.memory_bytes >> 10);
	assert_true(info.memory_bytes < BYTES_MOST);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(all_follow_their_writer), KTEST(none_reads_what_failed),
	   KTEST(lists_are_used_again))
