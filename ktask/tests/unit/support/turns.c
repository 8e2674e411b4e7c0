/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Turns by one mutex and one condition: see turns.h.
 */
#include "ktest.h"
#include "turns.h"

#include <pthread.h>

#define THE_TEST TURNS_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t threads[TURNS_MAX];
static int ended[TURNS_MAX];
static unsigned nr_threads;
static unsigned turn = THE_TEST;
static void (*thread_func)(void *arg, unsigned index);
static void *thread_arg;
static __thread unsigned own_index;

/* With the lock held. */
static void wait_for_turn(unsigned index)
{
	while (turn != index)
		pthread_cond_wait(&changed, &lock);
}

static void pass_turn(unsigned to)
{
	turn = to;
	pthread_cond_broadcast(&changed);
}

static void *thread_main(void *index)
{
	own_index = (unsigned)(uintptr_t)index;
	pthread_mutex_lock(&lock);
	wait_for_turn(own_index);
	pthread_mutex_unlock(&lock);
	thread_func(thread_arg, own_index);
	pthread_mutex_lock(&lock);
	ended[own_index] = 1;
	pass_turn(THE_TEST);
	pthread_mutex_unlock(&lock);
	return NULL;
}

void turns_start(unsigned nr, void (*func)(void *arg, unsigned index),
		 void *arg)
{
	assert_true(nr <= TURNS_MAX);
	thread_func = func;
	thread_arg = arg;
	nr_threads = nr;
	for (unsigned i = 0; i < nr; i++) {
		ended[i] = 0;
		assert_int_equal(pthread_create(&threads[i], NULL, thread_main,
						(void *)(uintptr_t)i),
				 0);
	}
}

void turns_yield(void)
{
	pthread_mutex_lock(&lock);
	pass_turn(THE_TEST);
	wait_for_turn(own_index);
	pthread_mutex_unlock(&lock);
}

int turns_give(unsigned index)
{
	int alive;

	pthread_mutex_lock(&lock);
	if (!ended[index]) {
		pass_turn(index);
		wait_for_turn(THE_TEST);
	}
	alive = !ended[index];
	pthread_mutex_unlock(&lock);
	return alive;
}

void turns_finish(void)
{
	for (unsigned i = 0; i < nr_threads; i++) {
		assert_true(ended[i]);
		pthread_join(threads[i], NULL);
	}
}
