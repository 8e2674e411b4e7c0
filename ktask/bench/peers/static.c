/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What most programs write themselves: the range in equal parts, one for each
 * of a fixed set of threads.  The threads are kept between jobs and wait on a
 * condition variable.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "peer.h"

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t begin;
	pthread_cond_t end;
	pthread_t *threads;
	unsigned nr_threads; /* with the caller */
	unsigned nr_working;
	unsigned long generation;
	int stopping;
	const struct peer_job *job;
} team = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.begin = PTHREAD_COND_INITIALIZER,
	.end = PTHREAD_COND_INITIALIZER,
};

static void do_part(const struct peer_job *job, unsigned part)
{
	size_t start = job->nr_units * part / team.nr_threads;
	size_t end = job->nr_units * (part + 1) / team.nr_threads;

	if (start < end)
		job->work(start, end, job->arg);
}

static void *run_member(void *arg)
{
	unsigned part = (unsigned)(size_t)arg;
	unsigned long seen = 0;

	pthread_mutex_lock(&team.mutex);
	for (;;) {
		while (team.generation == seen && !team.stopping)
			pthread_cond_wait(&team.begin, &team.mutex);
		if (team.stopping)
			break;
		seen = team.generation;
		pthread_mutex_unlock(&team.mutex);
		do_part(team.job, part);
		pthread_mutex_lock(&team.mutex);
		if (!--team.nr_working)
			pthread_cond_signal(&team.end);
	}
	pthread_mutex_unlock(&team.mutex);
	return NULL;
}

static void stop_threads(void)
{
	pthread_mutex_lock(&team.mutex);
	team.stopping = 1;
	pthread_cond_broadcast(&team.begin);
	pthread_mutex_unlock(&team.mutex);
	for (unsigned i = 1; i < team.nr_threads; i++)
		pthread_join(team.threads[i], NULL);
	free(team.threads);
	team.threads = NULL;
	team.nr_threads = 0;
	team.stopping = 0;
	team.generation = 0;
}

static int start_threads(unsigned threads)
{
	team.threads = calloc(threads, sizeof(*team.threads));
	if (!team.threads)
		return ENOMEM;
	for (team.nr_threads = 1; team.nr_threads < threads;
	     team.nr_threads++) {
		size_t part = team.nr_threads;
		int error = pthread_create(&team.threads[part], NULL,
					   run_member, (void *)part);

		if (error) {
			stop_threads();
			return error;
		}
	}
	return 0;
}

static int run_job(const struct peer_job *job)
{
	pthread_mutex_lock(&team.mutex);
	team.job = job;
	team.nr_working = team.nr_threads - 1;
	team.generation++;
	pthread_cond_broadcast(&team.begin);
	pthread_mutex_unlock(&team.mutex);

	do_part(job, 0);

	pthread_mutex_lock(&team.mutex);
	while (team.nr_working)
		pthread_cond_wait(&team.end, &team.mutex);
	pthread_mutex_unlock(&team.mutex);
	return 0;
}

const struct peer peer_static = {
	.name = "static split",
	.start = start_threads,
	.run = run_job,
	.stop = stop_threads,
};
