/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Launches, one after another: see launches.h.
 */
#include <string.h>

#include "bench/common/clock.h"
#include "launches.h"

/* A launch takes some 10 us. */
#define PAUSE_NS 20000

#define STREAM_NON_BLOCKING 1

/* Return: a cudaError_t; the driver's numbers are the same. */
static int launch_once(struct launches *launches, void *stream, void *word)
{
	const struct cuda_runtime *runtime = launches->runtime;
	int error;

	if (launches->has_kernel)
		error = launches->kernel.launch(launches->kernel.func, 1, 1, 1,
						1, 1, 1, 0, stream, NULL, NULL);
	else
		error = runtime->memset_async(word, 0, 4, stream);
	return error ? error : runtime->stream_synchronize(stream);
}

static void note_launch(struct launches *launches, uint64_t took_ns)
{
	if (took_ns > launches->longest_ns)
		launches->longest_ns = took_ns;
	launches->nr++;
}

static void *launch_always(void *arg)
{
	struct launches *launches = arg;
	const struct cuda_runtime *runtime = launches->runtime;
	void *stream, *word;

	runtime_check(runtime, runtime->set_device(0), "taking the first GPU");
	runtime_check(runtime, runtime->free(NULL), "taking its context");
	launches->has_kernel = kernel_load(&launches->kernel);
	runtime_check(runtime,
		      runtime->stream_create(&stream, STREAM_NON_BLOCKING),
		      "making a stream");
	runtime_check(runtime, runtime->allocate(&word, 4),
		      "taking memory of the GPU");
	runtime_check(runtime, launch_once(launches, stream, word),
		      "launching");
	launches->ready = true;
	while (!launches->stop) {
		uint64_t begin_ns = clock_ns();
		int error = launch_once(launches, stream, word);

		runtime_check(runtime, error, "launching");
		note_launch(launches, clock_ns() - begin_ns);
		clock_pause_ns(PAUSE_NS);
	}
	return NULL;
}

void launches_start(struct launches *launches,
		    const struct cuda_runtime *runtime)
{
	int error;

	memset(launches, 0, sizeof(*launches));
	launches->runtime = runtime;
	error = pthread_create(&launches->thread, NULL, launch_always,
			       launches);
	if (error)
		end_with("making a thread", strerror(error));
	while (!launches->ready)
		clock_pause_ns(1000000);
}

void launches_stop(struct launches *launches)
{
	launches->stop = true;
	pthread_join(launches->thread, NULL);
}

/* The one that has begun is not of what is measured next. */
static void await_launch(struct launches *launches)
{
	uint64_t nr = launches->nr;

	while (launches->nr == nr)
		clock_pause_ns(PAUSE_NS);
}

void launches_begin(struct launches *launches)
{
	await_launch(launches);
	launches->nr = 0;
	launches->longest_ns = 0;
}

struct launch_times launches_end(struct launches *launches)
{
	await_launch(launches);
	return (struct launch_times){ launches->nr, launches->longest_ns };
}
