/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The public calls for jobs that are waited for at once, and small ones.
 *
 * A job too small to split takes none of the engine: no memory, no system
 * call, no helper.
 */
#include <errno.h>
#include <pthread.h>

#include "lib/run.h"

#ifndef KTASK_VERSION
#define KTASK_VERSION "unknown"
#endif

const char *ktask_version(void)
{
	return KTASK_VERSION;
}

void *ktask_iter_range(void *position, size_t size)
{
	return (char *)position + size;
}

void ktask_fail_at(void *position)
{
	struct run_context *context = run_context();

	if (context->worker)
		context->worker->fail_pos = position;
}

static bool ctl_valid(const struct ktask_ctl *ctl)
{
	if (!ctl || ctl->struct_size != sizeof(*ctl))
		return false;
	if (!ctl->thread_func || !ctl->min_chunk_size ||
	    (ctl->flags & ~(KTASK_FIXED | KTASK_BLOCKS)))
		return false;
	if (ctl->align & (ctl->align - 1))
		return false;
	if (ctl->cpus && !ctl->cpus_size)
		return false;
	if (ctl->result && ctl->result->struct_size < sizeof(size_t))
		return false;
	for (size_t i = 0; i < sizeof(ctl->reserved) / sizeof(uint64_t); i++)
		if (ctl->reserved[i])
			return false;
	return true;
}

int run_check(const struct ktask_ctl *ctl, const struct ktask_node *nodes,
	      size_t nr_nodes)
{
	if (!ctl_valid(ctl) || (nr_nodes && !nodes))
		return -EINVAL;
	for (size_t i = 0; i < nr_nodes; i++)
		if (nodes[i].nid < NUMA_NO_NODE)
			return -EINVAL;
	return 0;
}

static int do_run(struct run *run, const struct ktask_node *nodes,
		  size_t nr_nodes, const struct ktask_ctl *ctl)
{
	int error = run_init(run, nodes, nr_nodes, ctl);

	if (error)
		return error;
	run_begin(run, false);
	run_work(run);
	error = run_end(run);
	run_release(run);
	return error;
}

/*
 * A run is 7 KiB, and its caller may have little stack: it lies in static memory
 * while there are places, in that which its thread had last if it can.  Not on
 * the heap, see lib/async.c.  What other threads had at a fork the child lacks.
 */
#define NR_PLACES 32

static struct place {
	struct run run;
	uint32_t taken;
} places[NR_PLACES];

static __thread unsigned last_place;

static struct place *get_place(void)
{
	for (unsigned i = 0; i < NR_PLACES; i++) {
		unsigned index = (last_place + i) % NR_PLACES;
		struct place *place = &places[index];
		uint32_t taken = kt_load(&place->taken);

		if (taken || !kt_cas(&place->taken, &taken, 1))
			continue;
		last_place = index;
		return place;
	}
	return NULL;
}

/* Apart: a frame is as large as any part of a function needs. */
__attribute__((noinline)) static int
run_on_stack(const struct ktask_node *nodes, size_t nr_nodes,
	     const struct ktask_ctl *ctl)
{
	struct run run;

	return do_run(&run, nodes, nr_nodes, ctl);
}

static int run_nodes(const struct ktask_node *nodes, size_t nr_nodes,
		     const struct ktask_ctl *ctl)
{
	struct place *place = get_place();
	int error;

	if (!place)
		return run_on_stack(nodes, nr_nodes, ctl);
	error = do_run(&place->run, nodes, nr_nodes, ctl);
	kt_store_release(&place->taken, 0);
	return error;
}

int ktask_run_numa(const struct ktask_node *nodes, size_t nr_nodes,
		   const struct ktask_ctl *ctl)
{
	int saved = errno;
	int cancel_state;
	int error = run_check(ctl, nodes, nr_nodes);

	if (error)
		return error;
	/* A cancelled caller would leave helpers with a dead stack. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	error = run_nodes(nodes, nr_nodes, ctl);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved;
	return error;
}

static bool too_small(size_t size, const struct ktask_ctl *ctl)
{
	return size / 2 < ctl->min_chunk_size && !ctl->progress_func &&
	       !ctl->deadline_ns && !ctl->result;
}

/* The function is the job: nothing to split, watch or undo. */
static int call_directly(void *start, size_t size, const struct ktask_ctl *ctl)
{
	ktask_iter_func iter =
		ctl->iter_func ? ctl->iter_func : ktask_iter_range;
	struct run_context *context = run_context();
	struct kt_worker *outer = context->worker;
	int cancel_state;
	int error;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	context->worker = NULL;
	error = ctl->thread_func(start, iter(start, size), ctl->func_arg);
	context->worker = outer;
	pthread_setcancelstate(cancel_state, NULL);
	return error;
}

/* Positions of the default iterator are addresses, as in kt_job_check(). */
static bool runs_over(void *start, size_t size, const struct ktask_ctl *ctl)
{
	return (!ctl->iter_func || ctl->iter_func == ktask_iter_range) &&
	       size > UINTPTR_MAX - (uintptr_t)start;
}

int ktask_run(void *start, size_t task_size, const struct ktask_ctl *ctl)
{
	struct ktask_node any = { start, task_size, NUMA_NO_NODE };
	int saved = errno;
	int error;

	if (!ctl_valid(ctl))
		return -EINVAL;
	if (!too_small(task_size, ctl))
		return ktask_run_numa(&any, 1, ctl);
	if (runs_over(start, task_size, ctl))
		return -EINVAL;
	if (!task_size)
		return 0;
	error = call_directly(start, task_size, ctl);
	errno = saved;
	return error;
}
