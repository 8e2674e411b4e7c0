/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Turns by one mutex and one condition: see turns.h.
 */
#include "ktest.h"
#include "turns.h"

#include <pthread.h>

#define THE_TEST TURNS_MAX

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static pthread_t turn_threads[TURNS_MAX];
static int has_ended[TURNS_MAX];
static unsigned nr_threads;
static unsigned whose_turn = THE_TEST;
static void (*thread_func)(void *arg, unsigned index);
static void *thread_arg;
static __thread unsigned own_index;

/* With the lock held. */
static void wait_for_turn(unsigned index)
{
	while (whose_turn != index)
		pthread_cond_wait(&turn_changed, &turn_lock);
}

static void pass_turn(unsigned to)
{
	whose_turn = to;
	pthread_cond_broadcast(&turn_changed);
}

static void *thread_main(void *index)
{
	own_index = (unsigned)(uintptr_t)index;
	pthread_mutex_lock(&turn_lock);
	wait_for_turn(own_index);
	pthread_mutex_unlock(&turn_lock);
	thread_func(thread_arg, own_index);
	pthread_mutex_lock(&turn_lock);
	has_ended[own_index] = 1;
	pass_turn(THE_TEST);
	pthread_mutex_unlock(&turn_lock);
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
		has_ended[i] = 0;
		assert_int_equal(pthread_create(&turn_threads[i], NULL,
						thread_main,
						(void *)(uintptr_t)i),
				 0);
	}
}

void turns_yield(void)
{
	pthread_mutex_lock(&turn_lock);
	pass_turn(THE_TEST);
	wait_for_turn(own_index);
	pthread_mutex_unlock(&turn_lock);
}

int turns_give(unsigned index)
{
	int alive;

	pthread_mutex_lock(&turn_lock);
	if (!has_ended[index]) {
		pass_turn(index);
		wait_for_turn(THE_TEST);
	}
	alive = !has_ended[index];
	pthread_mutex_unlock(&turn_lock);
	return alive;
}

void turns_finish(void)
{
	for (unsigned i = 0; i < nr_threads; i++) {
		assert_true(has_ended[i]);
		pthread_join(turn_threads[i], NULL);
	}
}
