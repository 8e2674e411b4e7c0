/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * No runtime, but the least that any does whose tasks are made one after another from data
 * that they name: the floor of "metg-" by dependences.
 *
 * One thread makes all tasks.  It knows for each datum who wrote it last and who has read it
 * since, and lets the new task come after these, once after each.  So a task has one cache
 * line, with the number of those that it still waits for and a list of those that wait for
 * it.  A thread that has done a task counts these down, goes on with the first that is ready
 * and queues the others.  The maker does tasks, too, if there are many, and at the end.
 *
 * What is left out: data are found by an index and not by their addresses, records are not
 * allocated, there are no errors, groups, priorities, nodes or nested tasks, nothing is
 * checked, and threads do not sleep.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/tasks/cases.h"

#define AFTER_INLINE 5
#define AFTER_MOST (2 * BEFORE_MAX + 1)
#define IS_DONE (1u << 31)
/* While a task is made it waits for so many more. */
#define MAKING (1u << 20)
#define THREADS_MOST 64
/* As many tasks as the runtime makes before its maker does some. */
#define AHEAD 2048
#define AHEAD_CHECK 64
/* More than are made at a time */
#define QUEUE 4096
#define LINE __attribute__((aligned(64)))

#define load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define load_seq(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define store_seq(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define add(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)

struct point {
	/* How many come after it, and IS_DONE */
	LINE uint32_t state;
	uint32_t missing;
	int number;
	struct point *after[AFTER_INLINE];
	struct point **more; /* the others of these */
};

_Static_assert(sizeof(struct point) == 64, "one line a task");

/* All by the maker. */
struct datum {
	struct point *writer;
	int nr_readers;
	struct point *readers[BEFORE_MAX];
};

/* Its owner pushes and pops at the bottom, thieves take from the top (Chase and Lev, SPAA
 * 2005). */
struct thread {
	LINE int64_t top;
	LINE int64_t bottom;
	struct point *queue[QUEUE];
	LINE uint32_t done; /* written by the thread */
	int number;
	pthread_t id;
};

static struct thread threads[THREADS_MOST];
static int nr_threads;
static bool stopped;
static struct point *points;
static struct datum data[2][1024];

/* ---- doing ---- */

static struct point **after_slot(struct point *point, uint32_t at)
{
	return at < AFTER_INLINE ? &point->after[at]
				 : &point->more[at - AFTER_INLINE];
}

static void queue_point(struct thread *thread, struct point *point)
{
	int64_t bottom = thread->bottom;

	__atomic_store_n(&thread->queue[bottom % QUEUE], point,
			 __ATOMIC_RELAXED);
	store(&thread->bottom, bottom + 1);
}

static bool take_top(struct thread *thread, int64_t top)
{
	return __atomic_compare_exchange_n(&thread->top, &top, top + 1, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static struct point *pop_point(struct thread *thread)
{
	int64_t bottom = thread->bottom - 1, top = load(&thread->top);
	struct point *point;

	if (top > bottom)
		return NULL;
	store_seq(&thread->bottom, bottom);
	top = load_seq(&thread->top);
	point = thread->queue[bottom % QUEUE];
	if (top < bottom)
		return point;
	if (top > bottom || !take_top(thread, top))
		point = NULL;
	store(&thread->bottom, bottom + 1);
	return point;
}

static struct point *steal_point(struct thread *thread)
{
	int64_t top = load_seq(&thread->top);
	struct point *point;

	if (top >= load_seq(&thread->bottom))
		return NULL;
	point = __atomic_load_n(&thread->queue[top % QUEUE], __ATOMIC_RELAXED);
	return take_top(thread, top) ? point : NULL;
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static struct point *count_down(struct thread *thread, struct point *point)
{
	uint32_t nr =
		__atomic_fetch_or(&point->state, IS_DONE, __ATOMIC_SEQ_CST);
	struct point *next = NULL;

	for (uint32_t i = 0; i < nr; i++) {
		struct point *after = *after_slot(point, i);

		if (load(&after->missing) != 1 &&
		    add(&after->missing, -1u) != 1)
			continue;
		if (!next)
			next = after;
		else
			queue_point(thread, after);
	}
	return next;
}

static void do_points(struct thread *thread, struct point *point)
{
	while (point) {
		struct point *next;

		task_point(point->number);
		next = count_down(thread, point);
		store(&thread->done, thread->done + 1);
		point = next;
	}
}

static struct point *find_point(struct thread *thread)
{
	struct point *found = pop_point(thread);

	for (int i = 1; i < nr_threads && !found; i++)
		found = steal_point(
			&threads[(thread->number + i) % nr_threads]);
	return found;
}

static void *help_maker(void *arg)
{
	struct thread *thread = arg;

	while (!load(&stopped)) {
		struct point *point = find_point(thread);

		if (point)
			do_points(thread, point);
		else
			pause_briefly();
	}
	return NULL;
}

/* ---- making ---- */

/* Return: does it come after a task that is not yet done, for the first time? */
static uint32_t add_edge(struct point *before, struct point *after)
{
	uint32_t nr = before ? load(&before->state) : IS_DONE;

	if (nr & IS_DONE || (nr && *after_slot(before, nr - 1) == after))
		return 0;
	*after_slot(before, nr) = after;
	return !(add(&before->state, 1) & IS_DONE);
}

static uint32_t read_datum(struct datum *datum, struct point *point)
{
	datum->readers[datum->nr_readers++] = point;
	return add_edge(datum->writer, point);
}

static uint32_t write_datum(struct datum *datum, struct point *point)
{
	uint32_t edges = 0;

	if (!datum->nr_readers)
		edges = add_edge(datum->writer, point);
	for (int i = 0; i < datum->nr_readers; i++)
		edges += add_edge(datum->readers[i], point);
	datum->nr_readers = 0;
	datum->writer = point;
	return edges;
}

/* As the runtime's program does, with the same data. */
static void make_point(const struct task_graph *graph, int step, int at)
{
	int number = step * graph->width + at, before[BEFORE_MAX];
	int nr = step ? graph->before(graph->width, step, at, before) : 0;
	struct point *point = &points[number];
	uint32_t edges = 0;

	store(&point->state, 0);
	store(&point->missing, MAKING);
	point->number = number;
	for (int i = 0; i < nr; i++)
		edges += read_datum(&data[!(step & 1)][before[i]], point);
	edges += write_datum(&data[step & 1][at], point);
	if (!edges || add(&point->missing, edges - MAKING) == MAKING - edges)
		queue_point(&threads[0], point);
}

static int count_done(void)
{
	uint32_t done = 0;

	for (int i = 0; i < nr_threads; i++)
		done += load(&threads[i].done);
	return (int)done;
}

/* The maker does tasks until no more than @nr are done. */
static void do_until(int nr)
{
	while (count_done() < nr) {
		struct point *point = find_point(&threads[0]);

		if (point)
			do_points(&threads[0], point);
		else
			pause_briefly();
	}
}

static void make_points(const struct task_graph *graph)
{
	memset(data, 0, sizeof(data));
	/* All have done what there was. */
	for (int i = 0; i < nr_threads; i++)
		store(&threads[i].done, 0);
	for (int i = 0; i < graph->steps * graph->width; i++) {
		make_point(graph, i / graph->width, i % graph->width);
		if (i % AHEAD_CHECK == 0 && i - count_done() > AHEAD)
			do_until(i - AHEAD / 2);
	}
}

/* ---- cases ---- */

static void run_graph(const struct task_graph *graph)
{
	make_points(graph);
	do_until(graph->steps * graph->width);
}

static double own_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void part_graph(const struct task_graph *graph, double *making,
		       double *running)
{
	double start = own_cpu_ns(), all_made;

	make_points(graph);
	all_made = own_cpu_ns();
	do_until(graph->steps * graph->width);
	*making = all_made - start;
	*running = own_cpu_ns() - all_made;
}

static void make_graph(const struct task_graph *graph)
{
	size_t nr = (size_t)(graph->width * graph->steps);
	struct point **more = calloc(nr * AFTER_MOST, sizeof(*more));

	points = aligned_alloc(64, nr * sizeof(*points));
	if (!points || !more || graph->width * graph->steps > QUEUE)
		abort();
	memset(points, 0, nr * sizeof(*points));
	for (size_t i = 0; i < nr; i++)
		points[i].more = &more[i * AFTER_MOST];
}

/* The thread of that number runs on one CPU only, as the runtime's do. */
static void bind_thread(pthread_t id, int number)
{
	cpu_set_t all, one;
	int cpu = -1;

	sched_getaffinity(0, sizeof(all), &all);
	while (number >= 0 && ++cpu < CPU_SETSIZE)
		number -= CPU_ISSET(cpu, &all) != 0;
	if (cpu == CPU_SETSIZE)
		return;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_setaffinity_np(id, sizeof(one), &one);
}

static void start_threads(int nr)
{
	nr_threads = nr < THREADS_MOST ? nr : THREADS_MOST;
	for (int i = 0; i < nr_threads; i++)
		threads[i].number = i;
	threads[0].id = pthread_self();
	for (int i = nr_threads; i-- > 0;) {
		if (i && pthread_create(&threads[i].id, NULL, help_maker,
					&threads[i]))
			abort();
		bind_thread(threads[i].id, i);
	}
}

static void stop_threads(void)
{
	store(&stopped, true);
	for (int i = 1; i < nr_threads; i++)
		pthread_join(threads[i].id, NULL);
}

const struct runtime_cases cases = { .start = start_threads,
				     .stop = stop_threads,
				     .make_graph = make_graph,
				     .run_graph = run_graph,
				     .part_graph = part_graph };
