/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Logs events.  Each thread writes into memory of its own; the leader also logs what UMT
 * reports of blocked threads.  Without a trace, running a task costs no further check:
 * rt.cancels, which is checked anyway, is not zero while there is a trace, and only then
 * more is checked.
 *
 * Does not own what is made of the events at the end (trace_graph.c, trace_write.c).
 *
 * Behaves badly with very many tasks: it keeps 16 million events, and only counts
 * further ones.
 *
 * Locking: there is no lock.
 *
 *	I: set before there are threads, constant until they have ended
 *	O: the worker, or attached thread, of that slot; for the last log the leader;
 *	   when all have ended the thread that stops the runtime
 *	A: any thread: by atomic operations
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define CHUNK_EVENTS 1600
#define EVENTS_MAX (16u << 20)
#define PATH_SIZE 4096

/* O */
struct chunk {
	struct chunk *next;
	unsigned nr;
	struct trace_event events[CHUNK_EVENTS];
};

struct log {
	CACHE_ALIGNED struct chunk *first; /* O */
	struct chunk *last; /* O */
};

struct trace {
	char json[PATH_SIZE], dot[PATH_SIZE]; /* "": none; I */
	unsigned nr_logs; /* one a slot, and the leader's; I */
	uint64_t nr_events, lost; /* A */
	struct log logs[];
};

/* ---- events ---- */

static struct chunk *add_chunk(struct log *log)
{
	struct chunk *chunk = NULL;

	if (at_add(&rt.trace->nr_events, CHUNK_EVENTS) < EVENTS_MAX)
		chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return NULL;
	chunk->next = NULL;
	chunk->nr = 0;
	if (log->last)
		log->last->next = chunk;
	else
		log->first = chunk;
	log->last = chunk;
	return chunk;
}

/* Stands for the leader, whose events belong to no worker's slot. */
#define LEADER UINT32_MAX

/* The log is the calling thread's own. */
static void assert_own_log(unsigned thread)
{
	if (thread == LEADER)
		leader_assert();
	else
		rank_assert(self_worker->slot == thread);
}

static void log_event(unsigned thread, struct trace_event event)
{
	struct trace *trace = rt.trace;
	struct log *log =
		&trace->logs[thread < trace->nr_logs - 1 ? thread
							 : trace->nr_logs - 1];
	struct chunk *chunk = log->last;

	assert_own_log(thread);
	if (!chunk || chunk->nr == CHUNK_EVENTS)
		chunk = add_chunk(log);
	if (!chunk) {
		at_add(&trace->lost, 1);
		return;
	}
	event.thread = thread;
	chunk->events[chunk->nr++] = event;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void trace_thread(const struct worker *w)
{
	log_event(w->slot,
		  (struct trace_event){ .ns = now_ns(),
					.a = (uint64_t)syscall(SYS_gettid),
					.kind = TRACE_THREAD });
}

static void log_made(const struct worker *w, const struct ktrt_task *task,
		     const struct ktrt_task *parent, ktrt_func func,
		     uint64_t ns)
{
	log_event(w->slot, (struct trace_event){ .ns = ns,
						 .a = (uintptr_t)task,
						 .b = (uintptr_t)parent,
						 .c = (uintptr_t)func,
						 .kind = TRACE_MADE });
}

void trace_made(const struct worker *w, const struct ktrt_task *task,
		ktrt_func func, const struct ktrt_attr *attr, uint64_t ns)
{
	log_made(w, task, w->current, func, ns);
	for (size_t i = 0; i < attr->nr_deps; i++) {
		const struct ktrt_dep *dep = &attr->deps[i];
		const struct ktrt_reduction *reduction = dep->addr;

		log_event(w->slot,
			  (struct trace_event){
				  .ns = ns,
				  .a = (uintptr_t)(dep->mode == KTRT_REDUCTION
							   ? reduction->data
							   : dep->addr),
				  .b = dep->len,
				  .c = (uintptr_t)task,
				  .kind = TRACE_DEP,
				  .small = (uint16_t)dep->mode });
	}
}

static void log_edges(const struct worker *w, const struct ktrt_task *node,
		      uint64_t ns)
{
	for (uint32_t i = 0; i < node->nr_after; i++)
		log_event(w->slot,
			  (struct trace_event){ .ns = ns,
						.a = (uintptr_t)node,
						.b = (uintptr_t)node->after[i],
						.kind = TRACE_EDGE });
}

void trace_nodes(const struct worker *w, struct ktrt_task **nodes, size_t nr)
{
	uint64_t ns = now_ns();

	for (size_t i = 0; i < nr; i++)
		log_made(w, nodes[i], nodes[i]->parent->parent, nodes[i]->func,
			 ns);
	for (size_t i = 0; i < nr; i++)
		log_edges(w, nodes[i], ns);
}

struct traced {
	const struct worker *w;
	const struct ktrt_task *task;
	uint64_t cpu_ns;
	int code;
};

/* Also if the thread ends in the task. */
static void log_end(struct traced *traced)
{
	log_event(traced->w->slot,
		  (struct trace_event){ .ns = now_ns(),
					.a = (uintptr_t)traced->task,
					.b = cpu_ns() - traced->cpu_ns,
					.c = (uint64_t)(int64_t)traced->code,
					.kind = TRACE_END });
}

int trace_call(struct worker *w, const struct ktrt_task *task, ktrt_func known,
	       ktrt_func func, void *arg)
{
	bool node = task->flags & TASK_FOR_NODE;
	const struct ktrt_task *parent =
		node ? task->parent->parent : task->parent;
	struct traced traced
		__attribute__((cleanup(log_end))) = { w, node ? task->of : task,
						      cpu_ns(), -ECANCELED };
	const struct core *core = worker_core(w);

	log_event(w->slot,
		  (struct trace_event){
			  .ns = now_ns(),
			  .a = (uintptr_t)traced.task,
			  .b = (uintptr_t)parent,
			  .c = (uintptr_t)known,
			  .kind = TRACE_BEGIN,
			  .small = (uint16_t)(core ? core->index + 1 : 0) });
	traced.code = func(arg);
	return traced.code;
}

void trace_wait(const struct worker *w, bool waits)
{
	log_event(w->slot,
		  (struct trace_event){ .ns = now_ns(),
					.kind = waits ? TRACE_WAIT
						      : TRACE_CONTINUE });
}

void trace_umt(const struct umt_event *event)
{
	uint16_t kind = event->kind == UMT_BLOCK ? TRACE_BLOCK : TRACE_RUN;

	if (event->kind != UMT_BLOCK && event->kind != UMT_RUN)
		return;
	log_event(LEADER, (struct trace_event){ .ns = event->time_ns,
						.a = event->tid,
						.kind = kind,
						.small = event->reason });
}

/* ---- starting and ending ---- */

/* A %p is the number of the process, as several may have one environment. */
static void read_path(const char *name, char path[PATH_SIZE])
{
	const char *text = secure_getenv(name);
	const char *mark = text ? strstr(text, "%p") : NULL;
	int size = PATH_SIZE, used;

	if (!text)
		return;
	if (mark)
		used = snprintf(path, PATH_SIZE, "%.*s%d%s", (int)(mark - text),
				text, (int)getpid(), mark + 2);
	else
		used = snprintf(path, PATH_SIZE, "%s", text);
	if (used >= size)
		path[0] = 0;
}

void trace_start(void)
{
	unsigned nr_logs = rt.nr_slots + 1;
	size_t bytes = sizeof(struct trace) + nr_logs * sizeof(struct log);
	struct trace *trace;

	if (!secure_getenv("KTRT_TRACE") && !secure_getenv("KTRT_DOT"))
		return;
	bytes = (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	trace = aligned_alloc(CACHE_LINE, bytes);
	if (!trace)
		return;
	memset(trace, 0, bytes);
	trace->nr_logs = nr_logs;
	read_path("KTRT_TRACE", trace->json);
	read_path("KTRT_DOT", trace->dot);
	rt.trace = trace;
	/* So that call_checked() is called for each task. */
	at_add(&rt.cancels, 1);
}

static int compare_events(const void *one, const void *other)
{
	const struct trace_event *a = *(struct trace_event *const *)one;
	const struct trace_event *b = *(struct trace_event *const *)other;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* In the order of time, and of each thread. */
static struct trace_event *sort_events(const struct trace_event *all, size_t nr)
{
	const struct trace_event **order = malloc((nr + 1) * sizeof(*order));
	struct trace_event *sorted = malloc((nr + 1) * sizeof(*sorted));

	for (size_t i = 0; order && i < nr; i++)
		order[i] = &all[i];
	if (order && sorted) {
		qsort(order, nr, sizeof(*order), compare_events);
		for (size_t i = 0; i < nr; i++)
			sorted[i] = *order[i];
	} else {
		free(sorted);
		sorted = NULL;
	}
	free(order);
	return sorted;
}

static size_t count_events(const struct trace *trace)
{
	size_t nr = 0;

	for (unsigned i = 0; i < trace->nr_logs; i++)
		for (struct chunk *chunk = trace->logs[i].first; chunk;
		     chunk = chunk->next)
			nr += chunk->nr;
	return nr;
}

/* Takes them out of the logs. */
static struct trace_event *take_events(struct trace *trace, size_t nr)
{
	struct trace_event *all = malloc((nr + 1) * sizeof(*all));
	struct trace_event *sorted;
	size_t at = 0;

	for (unsigned i = 0; i < trace->nr_logs; i++) {
		struct chunk *chunk = trace->logs[i].first, *next;

		for (; chunk; chunk = next) {
			next = chunk->next;
			if (all)
				memcpy(&all[at], chunk->events,
				       chunk->nr * sizeof(*all));
			at += chunk->nr;
			free(chunk);
		}
	}
	sorted = all ? sort_events(all, nr) : NULL;
	free(all);
	return sorted;
}

void trace_stop(void)
{
	struct trace *trace = rt.trace;
	struct trace_graph graph = { 0 };
	struct trace_event *events;
	size_t nr;

	if (!trace)
		return;
	rt.trace = NULL;
	nr = count_events(trace);
	events = take_events(trace, nr);
	if (events && !trace_graph_make(&graph, events, nr)) {
		if (trace->json[0])
			trace_write_json(trace->json, &graph, events, nr,
					 trace->lost);
		if (trace->dot[0])
			trace_write_dot(trace->dot, &graph);
	}
	trace_graph_free(&graph);
	free(events);
	free(trace);
}
