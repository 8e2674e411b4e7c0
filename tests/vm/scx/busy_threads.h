/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads that count as fast as they can, and note where.
 *
 * A thread writes what it counts; the test reads it at any time.
 */
#ifndef BUSY_THREADS_H
#define BUSY_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct busy_thread {
	pthread_t thread;
	bool is_low; /* SCHED_IDLE */
	int low_error; /* of becoming that: an errno, once it was stopped */
	uint64_t nr;
	uint64_t cpus; /* those that it was on, since somebody cleared that */
	bool ends;
};

/* busy_start - of a structure whose settings are filled in, on these CPUs */
void busy_start(struct busy_thread *busy, uint64_t cpus);

/* busy_bind - run it on @cpus from now on; false if none of them is online */
bool busy_bind(struct busy_thread *busy, uint64_t cpus);

/* busy_stop - end it, unless it was ended before */
void busy_stop(struct busy_thread *busy);

uint64_t busy_count(const struct busy_thread *busy);

/* busy_await - until it has counted @more and was on all of @cpus; a test that waits
 * too long fails */
void busy_await(struct busy_thread *busy, uint64_t more, uint64_t cpus);

#endif /* BUSY_THREADS_H */
