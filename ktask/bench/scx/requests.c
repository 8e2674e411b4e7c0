/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Requests and workers, as schbench has them (which Debian 12 has no package of).
 *
 * A worker sleeps on its own word.  The sender writes the time at which it sent a request
 * and wakes the worker, which writes down how late it is, computes, and writes down how
 * long all took.  Who writes what: the sender `sent_ns`, before it sets `state` to SENT;
 * the worker all else, before it sets that to DONE.
 *
 * Behaves badly with so many workers that the sender itself is late: the time of sending
 * is read for each worker.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/common/clock.h"
#include "computing.h"
#include "loads.h"

#define WORKERS_MAX 64
#define SAMPLES_MAX 4096
#define WINDOW_NS 1000000000
#define PERIOD_NS 8000000
#define STEPS 60 /* of a request */

enum state { DONE, SENT, QUIT };

struct samples {
	unsigned nr;
	double us[SAMPLES_MAX];
};

struct worker {
	_Alignas(64) uint32_t state;
	uint64_t sent_ns;
	uint32_t *
		any_done; /* the sender sleeps on it; NULL: it sleeps by the clock */
	pthread_t thread;
	struct samples wake, whole;
};

static void sleep_on_word(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_word(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void add_sample(struct samples *samples, uint64_t ns)
{
	if (samples->nr < SAMPLES_MAX)
		samples->us[samples->nr++] = (double)ns / 1e3;
}

static void *serve_requests(void *arg)
{
	struct worker *self = arg;
	uint32_t state;

	for (;;) {
		while ((state = __atomic_load_n(&self->state,
						__ATOMIC_ACQUIRE)) == DONE)
			sleep_on_word(&self->state, DONE);
		if (state == QUIT)
			return NULL;
		add_sample(&self->wake, clock_ns() - self->sent_ns);
		compute_steps(STEPS);
		add_sample(&self->whole, clock_ns() - self->sent_ns);
		__atomic_store_n(&self->state, DONE, __ATOMIC_RELEASE);
		if (!self->any_done)
			continue;
		__atomic_fetch_add(self->any_done, 1, __ATOMIC_RELEASE);
		wake_word(self->any_done);
	}
}

static void tell_worker(struct worker *worker, enum state state)
{
	worker->sent_ns = clock_ns();
	__atomic_store_n(&worker->state, state, __ATOMIC_RELEASE);
	wake_word(&worker->state);
}

static void send_to_waiting(struct worker *workers, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		if (__atomic_load_n(&workers[i].state, __ATOMIC_ACQUIRE) ==
		    DONE)
			tell_worker(&workers[i], SENT);
}

static void send_requests(struct worker *workers, unsigned nr,
			  uint32_t *any_done)
{
	uint64_t end_ns = clock_ns() + WINDOW_NS;

	while (clock_ns() < end_ns) {
		uint32_t seen = __atomic_load_n(any_done, __ATOMIC_ACQUIRE);

		send_to_waiting(workers, nr);
		if (workers[0].any_done)
			sleep_on_word(any_done, seen);
		else
			clock_pause_ns(PERIOD_NS);
	}
}

static void stop_workers(struct worker *workers, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		while (__atomic_load_n(&workers[i].state, __ATOMIC_ACQUIRE) !=
		       DONE)
			clock_pause_ns(1000000);
		tell_worker(&workers[i], QUIT);
		pthread_join(workers[i].thread, NULL);
	}
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of all workers' samples together. */
static void report_samples(const struct turn *turn, const char *load,
			   const char *what, struct worker *workers,
			   unsigned nr_workers, size_t offset)
{
	double *all = malloc(nr_workers * SAMPLES_MAX * sizeof(*all));
	unsigned nr = 0;
	char measure[40];

	for (unsigned i = 0; all && i < nr_workers; i++) {
		struct samples *samples =
			(struct samples *)((char *)&workers[i] + offset);

		for (unsigned j = 0; j < samples->nr; j++)
			all[nr++] = samples->us[j];
	}
	if (nr) {
		qsort(all, nr, sizeof(*all), compare_doubles);
		snprintf(measure, sizeof(measure), "%s p50 us", what);
		report_value(turn, load, measure, all[nr / 2]);
		snprintf(measure, sizeof(measure), "%s p99 us", what);
		report_value(turn, load, measure, all[nr * 99 / 100]);
	}
	free(all);
}

static int one_load(const struct turn *turn, const char *load, unsigned nr,
		    bool is_closed)
{
	struct worker *workers = aligned_alloc(64, nr * sizeof(struct worker));
	uint32_t any_done = 0;
	unsigned started;
	int error = 0;

	if (!workers)
		return ENOMEM;
	for (started = 0; started < nr && !error; started++) {
		workers[started] =
			(struct worker){ .any_done =
						 is_closed ? &any_done : NULL };
		error = pthread_create(&workers[started].thread, NULL,
				       serve_requests, &workers[started]);
	}
	started -= !!error;
	if (!error)
		send_requests(workers, nr, &any_done);
	stop_workers(workers, started);
	if (!error) {
		report_samples(turn, load, "wake-up", workers, nr,
			       offsetof(struct worker, wake));
		report_samples(turn, load, "request", workers, nr,
			       offsetof(struct worker, whole));
	}
	free(workers);
	return error;
}

int requests_run(const struct turn *turn)
{
	unsigned nr =
		turn->cpus < WORKERS_MAX / 2 ? turn->cpus : WORKERS_MAX / 2;
	struct computing *low;
	int error = one_load(turn, "requests, CPUs mostly idle", nr, false);

	if (!error)
		error = one_load(turn, "requests, more workers than CPUs",
				 2 * nr, true);
	if (error)
		return error;
	low = computing_start(turn->cpus, true);
	if (!low)
		return errno;
	error = one_load(turn, "requests beside SCHED_IDLE", nr, false);
	computing_stop(low);
	return error;
}
