/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that gives a GPU work all the time, as a server does: what each launch takes
 * until the GPU has done it.
 */
#ifndef BENCH_CUDA_LAUNCHES_H
#define BENCH_CUDA_LAUNCHES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime.h"

/* Atomic fields are written by the thread, but launches_stop() writes stop, and
 * launches_begin() sets the last two to 0. */
struct launches {
	const struct cuda_runtime *runtime;
	pthread_t thread;
	struct cuda_kernel kernel;
	bool has_kernel; /* else 4 bytes of the GPU are set */
	atomic_bool ready;
	atomic_bool stop;
	_Atomic uint64_t nr;
	_Atomic uint64_t longest_ns;
};

struct launch_times {
	uint64_t nr;
	uint64_t longest_ns;
};

/* Returns when the first one is done. */
void launches_start(struct launches *launches,
		    const struct cuda_runtime *runtime);
void launches_stop(struct launches *launches);

/* What begins from here on counts, until launches_end(), which waits for the last. */
void launches_begin(struct launches *launches);
struct launch_times launches_end(struct launches *launches);

#endif /* BENCH_CUDA_LAUNCHES_H */
