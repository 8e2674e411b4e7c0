/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See computing.h.  A thread alone writes what it counts.
 */
#include "computing.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define STEP_LOOPS 2000

struct computing_thread {
	_Alignas(64) uint64_t steps;
	pthread_t thread;
	struct computing *all;
};

struct computing {
	unsigned nr;
	bool is_low;
	bool ends;
	struct computing_thread threads[COMPUTING_MAX];
};

void compute_steps(unsigned nr)
{
	for (unsigned long i = 0; i < (unsigned long)nr * STEP_LOOPS; i++)
		__asm__ volatile("" : "+r"(i));
}

static void *compute_until_stopped(void *arg)
{
	static const struct sched_param none;
	struct computing_thread *self = arg;
	struct computing *all = self->all;

	if (all->is_low && sched_setscheduler(0, SCHED_IDLE, &none))
		abort();
	while (!__atomic_load_n(&all->ends, __ATOMIC_RELAXED)) {
		compute_steps(1);
		__atomic_store_n(&self->steps, self->steps + 1,
				 __ATOMIC_RELAXED);
	}
	return NULL;
}

struct computing *computing_start(unsigned nr, bool is_low)
{
	struct computing *all = aligned_alloc(64, sizeof(*all));
	int error = 0;

	if (!all)
		return NULL;
	*all = (struct computing){ .is_low = is_low };
	for (; all->nr < nr && all->nr < COMPUTING_MAX; all->nr++) {
		struct computing_thread *thread = &all->threads[all->nr];

		thread->all = all;
		error = pthread_create(&thread->thread, NULL,
				       compute_until_stopped, thread);
		if (error)
			break;
	}
	if (!error)
		return all;
	computing_stop(all);
	errno = error;
	return NULL;
}

uint64_t computing_done(const struct computing *computing)
{
	uint64_t steps = 0;

	for (unsigned i = 0; i < computing->nr; i++)
		steps += __atomic_load_n(&computing->threads[i].steps,
					 __ATOMIC_RELAXED);
	return steps;
}

void computing_stop(struct computing *computing)
{
	if (!computing)
		return;
	__atomic_store_n(&computing->ends, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < computing->nr; i++)
		pthread_join(computing->threads[i].thread, NULL);
	free(computing);
}
