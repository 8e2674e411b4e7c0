/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Traces, as KTRT_TRACE and KTRT_DOT ask for them: trace.c logs events while tasks run,
 * trace_graph.c finds tasks and their dependences in the events, trace_write.c writes
 * files.
 */
#ifndef RUNTIME_TRACE_H
#define RUNTIME_TRACE_H

#include "rt.h"

enum trace_kind {
	TRACE_THREAD, /* a: its number for the kernel */
	TRACE_MADE, /* a: task, b: parent, c: function */
	TRACE_DEP, /* a: address, b: bytes, c: task; small: mode */
	TRACE_EDGE, /* a: node, b: the one that waits for it */
	TRACE_BEGIN, /* as TRACE_MADE; small: core and 1 */
	TRACE_END, /* a: task, b: its time on a CPU in ns, c: its code */
	TRACE_WAIT, /* the thread sleeps in the middle of a task, */
	TRACE_CONTINUE, /* and goes on */
	TRACE_BLOCK, /* a: number of a thread; small: enum umt_reason */
	TRACE_RUN, /* a: number of a thread */
};

struct trace_event {
	uint64_t ns;
	uint64_t a, b, c;
	uint32_t thread; /* slot of the worker, or UINT32_MAX: the leader */
	uint16_t kind, small;
};

struct trace; /* in rt.trace, or NULL: nothing is written down */

/* ---- trace.c ---- */

/* As the environment says. */
void trace_start(void);
/* All threads have ended: write the files. */
void trace_stop(void);
/* A worker, or an attached thread, is the calling thread from here on. */
void trace_thread(const struct worker *w);
/* A child of the current task was made at @ns, before it could begin.  It may be gone
 * by now. */
void trace_made(const struct worker *w, const struct ktrt_task *task,
		ktrt_func func, const struct ktrt_attr *attr, uint64_t ns);
/* The same, before they may begin, for the nodes of a graph that is about to run. */
void trace_nodes(const struct worker *w, struct ktrt_task **nodes, size_t nr);
/* Call the function of the task; its code. */
int trace_call(struct worker *w, const struct ktrt_task *task, ktrt_func known,
	       ktrt_func func, void *arg);
void trace_wait(const struct worker *w, bool waits);
/* By the leader. */
void trace_umt(const struct umt_event *event);

/* ---- trace_graph.c ---- */

/* A task that was begun, as it is found in the events. */
struct trace_task {
	uint64_t begin_ns, end_ns; /* 0: it did not end */
	uint64_t cpu_ns, func, code;
	uint32_t id, parent; /* from 1 on; 0: none */
	uint32_t thread;
	uint16_t core; /* and 1 */
	bool begun;
};

struct trace_edge {
	uint32_t before, after;
	bool weak; /* only children of the one after wait */
};

struct trace_graph {
	struct trace_task *tasks; /* by id, less 1 */
	size_t nr_tasks, tasks_capacity;
	struct trace_edge *edges;
	size_t nr_edges, edges_capacity;
};

/* Events in the order of time; 0 or -ENOMEM */
int trace_graph_make(struct trace_graph *graph,
		     const struct trace_event *events, size_t nr);
void trace_graph_free(struct trace_graph *graph);

/* ---- trace_write.c ---- */

void trace_write_json(const char *path, const struct trace_graph *graph,
		      const struct trace_event *events, size_t nr,
		      uint64_t lost);
void trace_write_dot(const char *path, const struct trace_graph *graph);

#endif /* RUNTIME_TRACE_H */
