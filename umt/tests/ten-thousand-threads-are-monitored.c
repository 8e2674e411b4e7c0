/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ten thousand monitored threads: all are counted while they are ready, none
 * while they wait, none is left.  Fewer where the system allows no more.
 */
#include "support/subscribers.h"

#include <pthread.h>

#define NR_THREADS (KTEST_TSAN || KTEST_ASAN ? 1000 : 10000)

static struct umt *subscriber;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_end;

static void *wait_for_end(void *unused)
{
	assert_int_equal(umt_thread_add(subscriber), 0);
	pthread_mutex_lock(&mutex);
	while (!may_end)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void all_are_counted(void **state)
{
	static pthread_t threads[NR_THREADS];
	pthread_attr_t attr;
	int nr, i;

	subscriber = subscriber_of(UMT_BPF, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (nr = 0; nr < NR_THREADS; nr++)
		if (pthread_create(&threads[nr], &attr, wait_for_end, NULL))
			break;
	printf("# %d threads\n", nr);
	assert_true(nr > 0);
	assert_true(holds_soon(sums_of(subscriber).moved_in >= (uint64_t)nr));
	assert_true(holds_soon(!ready_of(subscriber)));

	pthread_mutex_lock(&mutex);
	may_end = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	assert_true(holds_soon(!ready_of(subscriber)));
	assert_all_zero(subscriber);
	assert_true(sums_of(subscriber).sleeps >= (uint64_t)nr);
	umt_close(subscriber);
}

KTEST_MAIN(KTEST(all_are_counted))
