/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The tasks of a step: the velocities of every slice, from the stresses within
 * HALF slices; then the stresses, from the velocities.  The slices that another
 * rank looks at go first and are sent by their own tasks; receiving is a task
 * of its own for each slice.  A snapshot is a task for each slice, which holds
 * up only what would overwrite it; reading one back runs ahead of the step that
 * wants it.  With --behind that task is short: it copies, and another one
 * writes the copy; and twice as much is read ahead.  A task that reads does
 * nothing else: its worker wakes up on a core that another one uses by then,
 * and has to leave it soon.  What was read is checked by the task that uses it.
 *
 * Between forward and backward steps there is no barrier either: each slice is
 * brought to rest by a task of its own, and what is read is what was written.
 *
 * A receive comes after all that its rank sends in the same half step or
 * before, and sending never waits.  So no ranks wait for each other in a
 * circle, however few workers they have: each would wait for one that is in an
 * earlier half step.
 */
#include <errno.h>
#include <stdlib.h>

#include "apps/common/comm.h"
#include "apps/common/disk.h"
#include "fwi.h"

#define TAG_VELOCITY 100 /* + 0 .. HALF - 1: how far from the border */
#define TAG_STRESS 200
#define TAG_RIGHTWARD HALF

struct graph {
	struct volume *volume;
	const struct fwi_options *options;
	struct snapshots *snapshots;
	/* For each slice: of snapshots that are read; with --behind, two, and
	 * also of those that are written. */
	char *buffers;
	unsigned nr_buffers;
	bool left, right; /* is there another rank? */
};

struct slice_task {
	struct graph *graph;
	int slice; /* or number of a halo slice */
	int snapshot, rank, tag;
	bool stress;
	struct source source;
};

static char *buffer_of(const struct slice_task *task)
{
	const struct graph *graph = task->graph;
	size_t turn = (unsigned)task->snapshot % graph->nr_buffers;
	size_t index = turn * graph->volume->slices + (size_t)task->slice;

	return graph->buffers + index * snapshot_bytes(graph->snapshots);
}

/* A slice of the half step's own field, or of what it looks at. */
static float *slice_of(const struct volume *volume, bool stress, int slice)
{
	return stress ? stress_of(volume, slice) : velocity_of(volume, slice);
}

static size_t bytes_of(const struct volume *volume, bool stress)
{
	return stress ? volume->stress_bytes : volume->velocity_bytes;
}

static int slices_of(const struct graph *graph)
{
	return (int)graph->volume->slices;
}

/* Does the rank on the left (right) look at it? */
static bool wanted_left(const struct graph *graph, int slice)
{
	return graph->left && slice < HALF;
}

static bool wanted_right(const struct graph *graph, int slice)
{
	return graph->right && slice >= slices_of(graph) - HALF;
}

/* ---- bodies ---- */

static void send_slice(const struct slice_task *task)
{
	const struct graph *graph = task->graph;
	const void *data = slice_of(graph->volume, task->stress, task->slice);
	size_t bytes = bytes_of(graph->volume, task->stress);
	int tag = task->stress ? TAG_STRESS : TAG_VELOCITY;

	if (wanted_left(graph, task->slice))
		comm_send(data, bytes, comm_rank() - 1, tag + task->slice);
	if (wanted_right(graph, task->slice))
		comm_send(data, bytes, comm_rank() + 1,
			  tag + TAG_RIGHTWARD + slices_of(graph) - 1 -
				  task->slice);
}

static int do_step(void *arg)
{
	const struct slice_task *task = arg;

	if (task->stress)
		stress_step(task->graph->volume, task->slice);
	else
		velocity_step(task->graph->volume, task->slice, &task->source);
	send_slice(task);
	return 0;
}

static void mark_received(void *arg)
{
	ktrt_events_done(arg, 1);
}

static int do_recv(void *arg)
{
	const struct slice_task *task = arg;
	const struct graph *graph = task->graph;
	void *data = slice_of(graph->volume, task->stress, task->slice);
	size_t bytes = bytes_of(graph->volume, task->stress);
	int error = 0;

	if (!graph->options->app.events)
		comm_recv(data, bytes, task->rank, task->tag);
	else if (!(error = ktrt_events_add(1)))
		comm_recv_then(data, bytes, task->rank, task->tag,
			       mark_received, ktrt_self());
	return error;
}

static int do_write(void *arg)
{
	const struct slice_task *task = arg;

	return snapshot_write(task->graph->snapshots, (unsigned)task->snapshot,
			      task->slice);
}

static int do_copy(void *arg)
{
	const struct slice_task *task = arg;

	snapshot_copy(task->graph->snapshots, (unsigned)task->snapshot,
		      task->slice, buffer_of(task));
	return 0;
}

static int do_write_copy(void *arg)
{
	const struct slice_task *task = arg;

	return snapshot_write_copy(task->graph->snapshots,
				   (unsigned)task->snapshot, task->slice,
				   buffer_of(task));
}

static int do_read(void *arg)
{
	const struct slice_task *task = arg;

	return snapshot_read(task->graph->snapshots, (unsigned)task->snapshot,
			     task->slice, buffer_of(task));
}

static int do_image(void *arg)
{
	const struct slice_task *task = arg;
	const void *buffer = buffer_of(task);
	int error =
		snapshot_check(task->graph->snapshots, (unsigned)task->snapshot,
			       task->slice, buffer);

	if (!error)
		image_add(task->graph->volume, task->slice, buffer);
	return error;
}

static int do_rest(void *arg)
{
	const struct slice_task *task = arg;

	slice_rest(task->graph->volume, task->slice);
	return 0;
}

/* ---- a half step ---- */

static int spawn_slice(const struct slice_task *task, int priority)
{
	const struct volume *volume = task->graph->volume;
	struct ktrt_dep deps[2 * HALF + 2];
	size_t nr = 0;

	for (int near = -HALF; near <= HALF; near++)
		deps[nr++] = (struct ktrt_dep){ slice_of(volume, !task->stress,
							 task->slice + near),
						0, KTRT_IN };
	deps[nr++] =
		(struct ktrt_dep){ slice_of(volume, task->stress, task->slice),
				   0, KTRT_INOUT };
	return app_spawn(do_step, task, sizeof(*task), deps, nr, priority);
}

/* After all that this rank sends in the half step. */
static int spawn_recv(const struct slice_task *task)
{
	const struct graph *graph = task->graph;
	struct ktrt_dep deps[2 * HALF + 1];
	size_t nr = 0;

	deps[nr++] = (struct ktrt_dep){
		slice_of(graph->volume, task->stress, task->slice), 0, KTRT_OUT
	};
	for (int slice = 0; slice < slices_of(graph); slice++)
		if (wanted_left(graph, slice) || wanted_right(graph, slice))
			deps[nr++] = (struct ktrt_dep){
				slice_of(graph->volume, task->stress, slice), 0,
				KTRT_IN
			};
	return app_spawn(do_recv, task, sizeof(*task), deps, nr, 2);
}

static int spawn_halos(struct slice_task task)
{
	const struct graph *graph = task.graph;
	int tag = task.stress ? TAG_STRESS : TAG_VELOCITY, error = 0;

	/* The nearest slice on the left is the last that its rank has. */
	for (int far = 0; graph->left && far < HALF && !error; far++) {
		task.slice = -1 - far;
		task.rank = comm_rank() - 1;
		task.tag = tag + TAG_RIGHTWARD + far;
		error = spawn_recv(&task);
	}
	for (int far = 0; graph->right && far < HALF && !error; far++) {
		task.slice = slices_of(graph) + far;
		task.rank = comm_rank() + 1;
		task.tag = tag + far;
		error = spawn_recv(&task);
	}
	return error;
}

static int spawn_half(struct slice_task task)
{
	const struct graph *graph = task.graph;
	int error = 0;

	for (int edges = 1; edges >= 0 && !error; edges--) {
		for (int slice = 0; slice < slices_of(graph) && !error;
		     slice++) {
			bool edge = wanted_left(graph, slice) ||
				    wanted_right(graph, slice);

			task.slice = slice;
			if (edge == edges)
				error = spawn_slice(&task, edge ? 2 : 0);
		}
		if (edges && !error)
			error = spawn_halos(task);
	}
	return error;
}

/* ---- snapshots ---- */

static void *name_of(const struct slice_task *task)
{
	return snapshot_name(task->graph->snapshots, (unsigned)task->snapshot,
			     task->slice);
}

static int spawn_write(const struct slice_task *task)
{
	const struct volume *volume = task->graph->volume;
	bool behind = task->graph->options->app.behind;
	void *buffer = buffer_of(task);
	const struct ktrt_dep write[] = {
		{ buffer, 0, KTRT_IN },
		{ name_of(task), 0, KTRT_OUT },
	};
	const struct ktrt_dep deps[] = {
		{ velocity_of(volume, task->slice), 0, KTRT_IN },
		{ stress_of(volume, task->slice), 0, KTRT_IN },
		{ behind ? buffer : name_of(task), 0, KTRT_OUT },
	};
	int error = app_spawn(behind ? do_copy : do_write, task, sizeof(*task),
			      deps, 3, 1);

	return error || !behind ? error
				: app_spawn(do_write_copy, task, sizeof(*task),
					    write, 2, 2);
}

static int spawn_image(const struct slice_task *task)
{
	const struct volume *volume = task->graph->volume;
	void *buffer = buffer_of(task);
	const struct ktrt_dep read[] = {
		{ buffer, 0, KTRT_OUT },
		{ name_of(task), 0, KTRT_IN },
	};
	const struct ktrt_dep add[] = {
		{ buffer, 0, KTRT_IN },
		{ velocity_of(volume, task->slice), 0, KTRT_IN },
		{ image_of(volume, task->slice), 0, KTRT_INOUT },
	};
	int error = app_spawn(do_read, task, sizeof(*task), read, 2, 1);

	return error ? error
		     : app_spawn(do_image, task, sizeof(*task), add, 3, 0);
}

/* ---- all steps ---- */

static int spawn_step(struct graph *graph, unsigned step, bool backward)
{
	struct slice_task task = {
		.graph = graph,
		.snapshot = snapshot_at(graph->options, step),
		.source = source_at(graph->options, step, backward),
	};
	int error = spawn_half(task);

	task.stress = true;
	if (!error)
		error = spawn_half(task);
	for (task.slice = 0;
	     task.snapshot >= 0 && !error && task.slice < slices_of(graph);
	     task.slice++)
		error = backward ? spawn_image(&task) : spawn_write(&task);
	return error;
}

static int spawn_rest(struct graph *graph)
{
	struct slice_task task = { .graph = graph };
	const struct volume *volume = graph->volume;
	int error = 0;

	for (task.slice = -HALF; task.slice < slices_of(graph) + HALF && !error;
	     task.slice++) {
		const struct ktrt_dep deps[] = {
			{ velocity_of(volume, task.slice), 0, KTRT_OUT },
			{ stress_of(volume, task.slice), 0, KTRT_OUT },
		};

		error = app_spawn(do_rest, &task, sizeof(task), deps, 2, 0);
	}
	return error;
}

static int spawn_all(struct graph *graph)
{
	unsigned steps = graph->options->steps;
	int error = 0;

	for (unsigned step = 1; step <= steps && !error; step++)
		error = spawn_step(graph, step, false);
	if (!error)
		error = spawn_rest(graph);
	for (unsigned step = steps; step && !error; step--)
		error = spawn_step(graph, step, true);
	return error;
}

static int run_graph(struct graph *graph)
{
	int error = spawn_all(graph), failed;

	/* They would wait for what this rank does not send any more. */
	if (error && comm_ranks() > 1)
		comm_abort();
	failed = ktrt_wait();
	return error ? error : failed;
}

int graph_run(struct volume *volume, const struct fwi_options *options,
	      struct snapshots *snapshots)
{
	struct graph graph = { .volume = volume,
			       .options = options,
			       .snapshots = snapshots,
			       .nr_buffers = options->app.behind ? 2 : 1,
			       .left = comm_rank() > 0,
			       .right = comm_rank() < comm_ranks() - 1 };
	int error;

	graph.buffers = disk_alloc(graph.nr_buffers * volume->slices *
				   snapshot_bytes(snapshots));
	if (!graph.buffers)
		return app_fail(-ENOMEM, "allocating buffers of snapshots");
	error = run_graph(&graph);
	free(graph.buffers);
	return error;
}
