/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Writes a trace to files.  JSON for Perfetto and chrome://tracing (the "Trace Event
 * Format") has tasks as slices of their threads, dependences as flows, what blocked
 * tasks, and how many tasks each core had.  The graph of tasks is for Graphviz.
 *
 * Does not own the contents.  The library prints nothing: if a file cannot be written
 * there is none, or a part of one.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define NAME_SIZE 128
#define NAMES 256

/* ---- names of functions ---- */

struct name {
	uint64_t func;
	char text[NAME_SIZE];
};

/* Nothing that would have to be escaped. */
static void tidy_name(char *text)
{
	for (; *text; text++)
		if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
			*text = '_';
}

static void look_up_name(struct name *name)
{
	const void *addr = (const void *)(uintptr_t)name->func;
	const char *file;
	Dl_info info;

	if (name->func == (uintptr_t)task_be_skipped) {
		snprintf(name->text, NAME_SIZE, "skipped");
	} else if (!dladdr(addr, &info) || !info.dli_fname) {
		snprintf(name->text, NAME_SIZE, "%#" PRIx64, name->func);
	} else if (info.dli_sname && info.dli_saddr == addr) {
		snprintf(name->text, NAME_SIZE, "%s", info.dli_sname);
	} else {
		file = strrchr(info.dli_fname, '/');
		snprintf(name->text, NAME_SIZE, "%.100s+%#tx",
			 file ? file + 1 : info.dli_fname,
			 (const char *)addr - (const char *)info.dli_fbase);
	}
	tidy_name(name->text);
}

static const char *name_of(struct name *names, uint64_t func)
{
	struct name *name = &names[func / 16 % NAMES];

	if (name->func != func || !name->text[0]) {
		name->func = func;
		look_up_name(name);
	}
	return name->text;
}

/* ---- JSON ---- */

/* A thread, as far as the events went. */
struct thread {
	uint64_t tid;
	unsigned nesting; /* tasks in each other */
	uint16_t core; /* and 1: of the outermost */
	bool waits, blocked;
	uint64_t since_ns; /* it does so */
	uint16_t reason;
};

struct writer {
	FILE *file;
	const char *comma;
	uint64_t start_ns;
	int pid;
	struct name *names;
	struct thread *threads; /* by slot */
	int *running; /* by core: tasks that are not blocked */
};

static void write_us(const struct writer *out, const char *key, uint64_t ns)
{
	fprintf(out->file, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000,
		(unsigned)(ns % 1000));
}

static void begin_event(struct writer *out, const char *phase, const char *name,
			uint32_t tid, uint64_t ns)
{
	fprintf(out->file,
		"%s\n{\"ph\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%" PRIu32,
		out->comma, phase, name, out->pid, tid);
	write_us(out, "ts", ns > out->start_ns ? ns - out->start_ns : 0);
	out->comma = ",";
}

static void end_event(const struct writer *out)
{
	fputc('}', out->file);
}

static void write_task(struct writer *out, const struct trace_task *task)
{
	uint64_t took = task->end_ns - task->begin_ns;

	begin_event(out, "X", name_of(out->names, task->func), task->thread,
		    task->begin_ns);
	write_us(out, "dur", took);
	fprintf(out->file,
		",\"cat\":\"task\",\"args\":{\"task\":%" PRIu32
		",\"parent\":%" PRIu32 ",\"core\":%d,\"code\":%d",
		task->id, task->parent, task->core - 1,
		(int)(int64_t)task->code);
	write_us(out, "cpu_us", task->cpu_ns);
	write_us(out, "off_cpu_us",
		 took > task->cpu_ns ? took - task->cpu_ns : 0);
	fputc('}', out->file);
	end_event(out);
}

static void write_flow_end(struct writer *out, const char *phase, size_t id,
			   const struct trace_task *task, uint64_t ns)
{
	begin_event(out, phase, "dependence", task->thread, ns);
	fprintf(out->file, ",\"cat\":\"dependence\",\"id\":%zu", id);
	if (*phase == 'f')
		fprintf(out->file, ",\"bp\":\"e\"");
	end_event(out);
}

static bool was_done(const struct trace_task *task)
{
	return task->begun && task->end_ns;
}

/* From the end of the slice of one to the beginning of the other's. */
static void write_flows(struct writer *out, const struct trace_graph *graph)
{
	for (size_t i = 0; i < graph->nr_edges; i++) {
		const struct trace_task *before =
			&graph->tasks[graph->edges[i].before - 1];
		const struct trace_task *after =
			&graph->tasks[graph->edges[i].after - 1];
		uint64_t ns = before->end_ns;

		if (!was_done(before) || !was_done(after))
			continue;
		/* It did not wait, or for a part of it that was released. */
		if (after->begin_ns < ns)
			continue;
		write_flow_end(out, "s", i + 1, before,
			       ns > before->begin_ns ? ns - 1 : ns);
		write_flow_end(out, "f", i + 1, after, after->begin_ns);
	}
}

/* ---- what threads do ---- */

static bool thread_runs(const struct thread *thread)
{
	return thread->nesting && !thread->waits && !thread->blocked;
}

/* Write the core's count of running tasks if the thread has begun or stopped running. */
static void count_running(struct writer *out, const struct thread *thread,
			  bool ran, uint64_t ns)
{
	bool runs = thread_runs(thread);
	int cpu = -1;
	char name[48];

	if (ran == runs || !thread->core)
		return;
	out->running[thread->core - 1] += runs ? 1 : -1;
	if (thread->core <= rt.nr_cores)
		cpu = rt.cores[thread->core - 1].cpu;
	snprintf(name, sizeof(name), "core %d (CPU %d)", thread->core - 1, cpu);
	begin_event(out, "C", name, 0, ns);
	fprintf(out->file, ",\"args\":{\"tasks\":%d}",
		out->running[thread->core - 1]);
	end_event(out);
}

static void write_pause(struct writer *out, uint32_t slot,
			const struct thread *thread, const char *category,
			uint64_t ns)
{
	char name[48] = "waits";

	if (thread->blocked)
		snprintf(name, sizeof(name), "blocked: %s",
			 umt_reason_name(thread->reason)
				 ? umt_reason_name(thread->reason)
				 : "other");
	begin_event(out, "X", name, slot, thread->since_ns);
	write_us(out, "dur", ns - thread->since_ns);
	fprintf(out->file, ",\"cat\":\"%s\"", category);
	end_event(out);
}

static uint32_t slot_of(const struct writer *out, uint64_t tid)
{
	uint32_t slot = 0;

	while (slot < rt.nr_slots && out->threads[slot].tid != tid)
		slot++;
	return slot;
}

/* Only in tasks; and where the runtime itself waits that is said already. */
static void see_umt(struct writer *out, const struct trace_event *event)
{
	uint32_t slot = slot_of(out, event->a);
	struct thread *thread = &out->threads[slot];
	bool ran;

	if (slot == rt.nr_slots || !thread->nesting || thread->waits)
		return;
	ran = thread_runs(thread);
	if (event->kind == TRACE_BLOCK && !thread->blocked) {
		thread->blocked = true;
		thread->since_ns = event->ns;
		thread->reason = event->small;
	} else if (event->kind == TRACE_RUN && thread->blocked) {
		write_pause(out, slot, thread, "blocked", event->ns);
		thread->blocked = false;
	}
	count_running(out, thread, ran, event->ns);
}

/* If the end of a pause was missed, it is no later than this. */
static void end_pause(struct writer *out, uint32_t slot, struct thread *thread,
		      uint64_t ns)
{
	if (thread->blocked)
		write_pause(out, slot, thread, "blocked", ns);
	else if (thread->waits)
		write_pause(out, slot, thread, "wait", ns);
	thread->blocked = thread->waits = false;
}

static void see_event(struct writer *out, const struct trace_event *event)
{
	struct thread *thread = &out->threads[event->thread];
	bool ran = thread_runs(thread);

	switch (event->kind) {
	case TRACE_THREAD:
		memset(thread, 0, sizeof(*thread));
		thread->tid = event->a;
		break;
	case TRACE_BEGIN:
		end_pause(out, event->thread, thread, event->ns);
		if (!thread->nesting++)
			thread->core = event->small;
		break;
	case TRACE_END:
		end_pause(out, event->thread, thread, event->ns);
		thread->nesting -= !!thread->nesting;
		break;
	case TRACE_WAIT:
		end_pause(out, event->thread, thread, event->ns);
		thread->waits = thread->nesting;
		thread->since_ns = event->ns;
		break;
	case TRACE_CONTINUE:
		end_pause(out, event->thread, thread, event->ns);
		break;
	}
	count_running(out, thread, ran, event->ns);
}

static void write_threads(struct writer *out, const struct trace_event *events,
			  size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (events[i].kind == TRACE_BLOCK ||
		    events[i].kind == TRACE_RUN)
			see_umt(out, &events[i]);
		else if (events[i].thread < rt.nr_slots)
			see_event(out, &events[i]);
	}
}

static void write_names(struct writer *out)
{
	begin_event(out, "M", "process_name", 0, 0);
	fprintf(out->file, ",\"args\":{\"name\":\"ktrt\"}");
	end_event(out);
	for (uint32_t i = 0; i < rt.nr_slots; i++) {
		if (!out->threads[i].tid)
			continue;
		begin_event(out, "M", "thread_name", i, 0);
		fprintf(out->file,
			",\"args\":{\"name\":\"thread %" PRIu32 " (%" PRIu64
			")\"}",
			i, out->threads[i].tid);
		end_event(out);
	}
}

static void write_all(struct writer *out, const struct trace_graph *graph,
		      const struct trace_event *events, size_t nr,
		      uint64_t lost)
{
	fprintf(out->file,
		"{\"displayTimeUnit\":\"ns\",\"otherData\":"
		"{\"version\":\"%s\",\"lost\":%" PRIu64 "},\"traceEvents\":[",
		KTASK_VERSION, lost);
	for (size_t i = 0; i < graph->nr_tasks; i++)
		if (was_done(&graph->tasks[i]))
			write_task(out, &graph->tasks[i]);
	write_flows(out, graph);
	write_threads(out, events, nr);
	write_names(out);
	fprintf(out->file, "\n]}\n");
}

void trace_write_json(const char *path, const struct trace_graph *graph,
		      const struct trace_event *events, size_t nr,
		      uint64_t lost)
{
	struct writer out = { .file = fopen(path, "we"),
			      .comma = "",
			      .start_ns = nr ? events[0].ns : 0,
			      .pid = (int)getpid(),
			      .names = calloc(NAMES, sizeof(struct name)),
			      .threads = calloc(rt.nr_slots,
						sizeof(struct thread)),
			      .running = calloc(rt.nr_cores + 1, sizeof(int)) };

	if (out.file && out.names && out.threads && out.running)
		write_all(&out, graph, events, nr, lost);
	if (out.file)
		fclose(out.file);
	free(out.names);
	free(out.threads);
	free(out.running);
}

/* ---- for Graphviz ---- */

static void write_graph(FILE *file, struct name *names,
			const struct trace_graph *graph)
{
	fprintf(file, "digraph ktrt {\n\tnode [shape=box];\n");
	for (size_t i = 0; i < graph->nr_tasks; i++) {
		const struct trace_task *task = &graph->tasks[i];
		uint64_t took =
			was_done(task) ? task->end_ns - task->begin_ns : 0;

		fprintf(file,
			"\tt%" PRIu32 " [label=\"%" PRIu32 " %s\\n%" PRIu64
			".%03u us\"%s];\n",
			task->id, task->id, name_of(names, task->func),
			took / 1000, (unsigned)(took % 1000),
			task->code ? ", color=red" : "");
		if (task->parent)
			fprintf(file,
				"\tt%" PRIu32 " -> t%" PRIu32
				" [style=dashed, color=gray];\n",
				task->parent, task->id);
	}
	for (size_t i = 0; i < graph->nr_edges; i++)
		fprintf(file, "\tt%" PRIu32 " -> t%" PRIu32 "%s;\n",
			graph->edges[i].before, graph->edges[i].after,
			graph->edges[i].weak ? " [style=dotted]" : "");
	fprintf(file, "}\n");
}

void trace_write_dot(const char *path, const struct trace_graph *graph)
{
	struct name *names = calloc(NAMES, sizeof(*names));
	FILE *file = names ? fopen(path, "we") : NULL;

	if (file) {
		write_graph(file, names, graph);
		fclose(file);
	}
	free(names);
}
