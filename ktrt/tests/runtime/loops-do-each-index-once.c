/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A loop does each index once, whatever the grain; a reduction keeps the order of
 * the range; what fails or is cancelled stops the rest.
 */
#include "support/runs.h"

#define INDICES 5000

static unsigned hits[INDICES], calls;
static uint64_t modulus = 1000003;

/* ---- loops ---- */

struct slow {
	size_t index; /* where the work is */
	unsigned rounds;
};

static int hit_each(size_t first, size_t end, void *arg)
{
	const struct slow *slow = arg;

	if (first >= end || end > INDICES)
		return -EINVAL;
	for (size_t i = first; i < end; i++) {
		unsigned rounds = i >= slow->index ? slow->rounds : 1;

		while (rounds--)
			__asm__ volatile("" ::: "memory");
		more(hits[i]);
	}
	return 0;
}

static void random_loops(void)
{
	static uint64_t random;

	if (!random)
		random = ktest_seed();
	for (int round = 0; round < 30; round++) {
		size_t end = ktest_random_below(&random, INDICES) + 1;
		size_t first = ktest_random_below(&random, end);
		size_t grain = ktest_random_below(&random, 3)
				       ? 0
				       : ktest_random_below(&random, 100) + 1;
		struct slow slow = { ktest_random_below(&random, INDICES),
				     (unsigned)ktest_random_below(&random,
								  3000) };

		memset(hits, 0, sizeof(hits));
		assert_int_equal(ktrt_for(first, end, grain, hit_each, &slow),
				 0);
		for (size_t i = 0; i < INDICES; i++)
			assert_int_equal(get(hits[i]), i >= first && i < end);
	}
	assert_int_equal(ktrt_for(7, 7, 0, hit_each, NULL), 0);
	assert_int_equal(ktrt_for(8, 7, 0, hit_each, NULL), 0);
}

static void each_index_is_done_once(void **state)
{
	in_each_way(random_loops);
}

static int count_call(size_t first, size_t end, void *arg)
{
	more(calls);
	return end - first <= (size_t)arg ? 0 : -EINVAL;
}

static int ends_of_numbers(size_t first, size_t end, void *arg)
{
	if (first < SIZE_MAX - 1000 || end <= first)
		return -EINVAL;
	__atomic_add_fetch((size_t *)arg, end - first, __ATOMIC_SEQ_CST);
	return 0;
}

static void the_grain_is_the_callers(void **state)
{
	size_t sum = 0;

	start_way(&all_ways[0]);
	set(calls, 0);
	assert_int_equal(ktrt_for(0, 1000, 10, count_call, (void *)10), 0);
	assert_true(get(calls) >= 100);
	set(calls, 0);
	assert_int_equal(ktrt_for(0, 1000, SIZE_MAX, count_call, (void *)1000),
			 0);
	assert_int_equal(get(calls), 1);
	assert_int_equal(
		ktrt_for(SIZE_MAX - 1000, SIZE_MAX, 0, ends_of_numbers, &sum),
		0);
	assert_int_equal(sum, 1000);
	assert_int_equal(ktrt_stop(), 0);
	assert_int_equal(ktrt_for(0, 1, 0, count_call, NULL), -ESRCH);
}

/* Loops in loops, with tasks that nobody waits for but the loop. */
static int do_child(void *arg)
{
	more(hits[*(size_t *)arg]);
	return 0;
}

static int make_children(size_t first, size_t end, void *arg)
{
	int error = 0;

	for (size_t i = first; i < end && !error; i++) {
		size_t at = *(size_t *)arg * 50 + i;

		error = ktrt_spawn_copy(do_child, &at, sizeof(at));
	}
	return error;
}

static int loop_within(size_t first, size_t end, void *arg)
{
	int error = 0;

	for (size_t i = first; i < end && !error; i++)
		error = ktrt_for(0, 50, i % 2, make_children, &i);
	return error;
}

static void nested_loops(void)
{
	memset(hits, 0, sizeof(hits));
	assert_int_equal(ktrt_for(0, 100, 0, loop_within, NULL), 0);
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(get(hits[i]), 1);
}

static void loops_may_be_in_loops(void **state)
{
	in_each_way(nested_loops);
}

/* ---- what stops ---- */

static struct ktrt_group *group;

static int fail_at(size_t first, size_t end, void *arg)
{
	more(calls);
	return first == *(size_t *)arg ? 55 : 0;
}

static int cancel_at(size_t first, size_t end, void *arg)
{
	more(calls);
	if (first == *(size_t *)arg)
		ktrt_group_cancel(group);
	return 0;
}

static int loop_in_group(void *arg)
{
	return ktrt_for(0, 200, 1, cancel_at, arg);
}

static void stop_loops(void)
{
	for (size_t at = 0; at < 200; at += 3) {
		struct ktrt_attr attr = KTRT_ATTR_INIT;
		int code;

		set(calls, 0);
		assert_int_equal(ktrt_for(0, 200, 1, fail_at, &at), 55);
		assert_true(get(calls) <= 200);
		assert_int_equal(ktrt_group_new(&group), 0);
		attr.group = group;
		set(calls, 0);
		assert_int_equal(ktrt_spawn_attr(loop_in_group, &at, &attr), 0);
		code = ktrt_group_wait(group);
		assert_true(code == -ECANCELED || (!code && get(calls) == 200));
		/* Nothing of it is begun. */
		set(calls, 0);
		assert_int_equal(ktrt_spawn_attr(loop_in_group, &at, &attr), 0);
		assert_int_equal(ktrt_group_wait(group), -ECANCELED);
		assert_int_equal(get(calls), 0);
		ktrt_group_free(group);
	}
	assert_int_equal(ktrt_wait(), 0);
}

static void codes_and_cancelling_stop_a_loop(void **state)
{
	in_each_way(stop_loops);
}

static int nap_a_little(size_t first, size_t end, void *arg)
{
	nap_us(500);
	more(calls);
	return 0;
}

static void block_loop(void)
{
	set(calls, 0);
	assert_int_equal(ktrt_for(0, 60, 1, nap_a_little, NULL), 0);
	assert_int_equal(get(calls), 60);
}

static void bodies_may_block(void **state)
{
	in_each_way(block_loop);
}

/* ---- reductions ---- */

/* Multiplied in another order it is another. */
struct matrix {
	uint64_t a, b, c, d;
};

static struct matrix multiply_matrices(struct matrix x, struct matrix y)
{
	return (struct matrix){
		(x.a * y.a + x.b * y.c) % modulus,
		(x.a * y.b + x.b * y.d) % modulus,
		(x.c * y.a + x.d * y.c) % modulus,
		(x.c * y.b + x.d * y.d) % modulus,
	};
}

static struct matrix matrix_at(size_t i)
{
	return (struct matrix){ i % 7 + 1, i % 5, i % 3, i % 11 + 1 };
}

static int multiply_range(size_t first, size_t end, void *value, void *arg)
{
	struct matrix *product = value;

	for (; first < end; first++) {
		*product = multiply_matrices(*product, matrix_at(first));
		for (unsigned i = 0; i < *(unsigned *)arg; i++)
			__asm__ volatile("" ::: "memory");
	}
	return 0;
}

static int multiply_both(void *into, void *from, void *arg)
{
	struct matrix *product = into;

	*product = multiply_matrices(*product, *(struct matrix *)from);
	return 0;
}

static void reduce_matrices(void)
{
	for (size_t nr = 0; nr < 3000; nr += 97) {
		struct matrix expected = { 1, 0, 0, 1 }, product = expected;
		unsigned pause = (unsigned)nr % 1000;

		for (size_t i = 5; i < nr; i++)
			expected = multiply_matrices(expected, matrix_at(i));
		assert_int_equal(ktrt_reduce(5, nr, nr % 3, multiply_range,
					     multiply_both, &product,
					     sizeof(product), &pause),
				 0);
		assert_memory_equal(&product, &expected, sizeof(product));
	}
}

static void reductions_keep_the_order(void **state)
{
	in_each_way(reduce_matrices);
}

/* Values that must be freed: each is, also after a failure. */
static unsigned alive;

static int count_owned(size_t first, size_t end, void *value, void *arg)
{
	size_t **sum = value;

	if (!*sum) {
		*sum = calloc(1, sizeof(**sum));
		more(alive);
	}
	**sum += end - first;
	nap_us(20);
	return first <= *(size_t *)arg && *(size_t *)arg < end ? 66 : 0;
}

static int join_owned(void *into, void *from, void *arg)
{
	size_t **left = into, **right = from;

	if (!*left) {
		*left = *right;
	} else if (*right) {
		**left += **right;
		free(*right);
		__atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST);
	}
	return 0;
}

static void owned_values(void)
{
	for (size_t at = 0; at <= 100; at += 20) {
		size_t *sum = NULL;
		int code = ktrt_reduce(0, 100, 1, count_owned, join_owned, &sum,
				       sizeof(sum), &at);

		assert_int_equal(code, at < 100 ? 66 : 0);
		assert_true(at < 100 || *sum == 100);
		assert_int_equal(get(alive), 1);
		free(sum);
		set(alive, 0);
	}
}

static void each_value_is_combined(void **state)
{
	in_each_way(owned_values);
}

KTEST_MAIN(KTEST(each_index_is_done_once), KTEST(the_grain_is_the_callers),
	   KTEST(loops_may_be_in_loops),
	   KTEST(codes_and_cancelling_stop_a_loop), KTEST(bodies_may_block),
	   KTEST(reductions_keep_the_order), KTEST(each_value_is_combined))
