/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is kept by the number of a thread belongs to one task at a time that waits
 * for nothing, also where workers share a core.
 */
#include "support/runs.h"

#include <pthread.h>
#include <stdlib.h>

static struct mine {
	unsigned long sum; /* plain: nobody else may use it */
	int used;
	char bytes[48];
} * all;

static unsigned wrong;

static struct mine *get_own(void)
{
	int index = ktrt_thread_index();

	if (index < 0 || index >= ktrt_thread_indices()) {
		more(wrong);
		return &all[0];
	}
	return &all[index];
}

/* The thread may lose its core in the middle. */
static int add_one(void *arg)
{
	struct mine *mine = get_own();

	if (__atomic_exchange_n(&mine->used, 1, __ATOMIC_SEQ_CST))
		more(wrong);
	mine->sum++;
	if ((intptr_t)arg % 16 == 0)
		nap_us(200);
	if (get_own() != mine)
		more(wrong);
	set(mine->used, 0);
	return 0;
}

static int add_many(void *arg)
{
	for (intptr_t i = 0; i < 500; i++) {
		int error = ktrt_spawn(add_one, (void *)i);

		if (error)
			return error;
	}
	return ktrt_wait();
}

static void *attach_and_add(void *arg)
{
	if (ktrt_attach() || add_one((void *)1) || add_many(NULL) ||
	    ktrt_detach())
		more(wrong);
	return NULL;
}

static void add_numbers(void)
{
	int nr = ktrt_thread_indices();
	unsigned long sum = 0;
	pthread_t threads[3];

	assert_true(nr > 0);
	all = calloc((size_t)nr, sizeof(*all));
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, attach_and_add, NULL),
			0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ktrt_run(add_many, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < nr; i++)
		sum += all[i].sum;
	assert_int_equal(sum, 6 * 500 + 3);
	assert_int_equal(get(wrong), 0);
	free(all);
}

static void each_has_its_own(void **state)
{
	assert_int_equal(ktrt_thread_index(), -1);
	assert_int_equal(ktrt_thread_indices(), -ESRCH);
	in_each_way(add_numbers);
}

KTEST_MAIN(KTEST(each_has_its_own))
