/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Loops and reductions over a range of indices.
 *
 * A task does its part of the range from the front, chunk after chunk.  Before each
 * chunk it checks whether its worker's queue is empty.  If so, others find nothing to
 * steal, and the task makes the rear half of its part another task.  So parts are made
 * only when they are wanted, one more than are taken (after Tzannes et al., "Lazy
 * binary-splitting", PPoPP 2010).
 *
 * The number of indices in a chunk follows from the time that chunks take.  The aim is
 * 20 us: long beside that check, and short enough for others to wait.
 *
 * An attached thread begins its loop itself, and does parts of it, if chunks by that
 * function were brief so far (func_kinds.h).  If they no longer are, or another thread should
 * have the core (visit.c), it leaves the rest of its part to others.
 *
 * In the middle of a task a loop that is one chunk is done there, and no task is made.  It is
 * one if the caller says so, or if chunks were brief so far and the first microsecond of the
 * loop suggests it.  Otherwise its rest is done by tasks.
 *
 * Owns what a loop's parts share; each part holds it.  Behaves badly if a few adjacent
 * indices take nearly all of the time: a part is halved only between chunks.
 *
 * Locking: there is no lock.
 *
 *	I: set before the first part begins, constant from then on
 *	O: the thread that runs the part, or that is about to leave half of it
 *	A: any thread that runs a part: by atomic operations
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "func_kinds.h"

#define CHUNK_NS 20000
/* Attached threads do no longer ones. */
#define CHUNK_BRIEF_NS (2 * CHUNK_NS)
/* If the grain is the caller's, attached threads time so many chunks together. */
#define TIMED_TOGETHER 8

struct part {
	struct loop *loop; /* I */
	size_t first, end; /* O */
	void *value; /* of a reduction; O, then the thread that combines it */
};

struct loop {
	struct part whole; /* I; then O */
	bool begun; /* the first part's; read when the loop has ended */
	ktrt_range_func func; /* I */
	ktrt_reduce_func reduce; /* in place of @func; I */
	ktrt_combine_func combine; /* I */
	void *arg; /* I */
	size_t grain; /* indices a chunk, as found so far; A */
	bool measures; /* else @grain is the caller's; I */
	uint32_t stopped; /* a part failed; A */
	uint32_t parts; /* A */
	size_t bytes; /* of a value; I */
	_Alignas(16) char neutral[]; /* I */
};

/* The parts that a part left to others, the nearest first; O */
struct later {
	struct later *next;
	_Alignas(16) char value[];
};

static void part_ended(struct part *part)
{
	if (at_sub(&part->loop->parts, 1) == 1)
		free(part->loop);
}

/* What is known of the loop's function; never called by this type. */
static ktrt_func loop_func(const struct loop *loop)
{
	return loop->reduce ? (ktrt_func)(void (*)(void))loop->reduce
			    : (ktrt_func)(void (*)(void))loop->func;
}

static int do_part(void *arg);

/* ---- splitting ---- */

static inline bool is_wanted(const struct worker *w, const struct part *part,
			     size_t grain)
{
	return (part->end - part->first) / 2 >= grain &&
	       deque_size(&w->deque) <= 0 &&
	       likely(!(w->current->flags & TASK_FINAL));
}

/* Memory for a value does not wrap here if it did not in new_loop(). */
_Static_assert(sizeof(struct later) <= sizeof(struct loop), "less is added");

/* Make what begins at @first a task.  Return: false if that failed, and the part still has
 * all. */
static bool leave_from(struct part *part, size_t first, struct later **later)
{
	struct loop *loop = part->loop;
	struct part rear = *part, *spawned;
	struct later *kept = NULL;

	rear.first = first;
	if (loop->reduce) {
		kept = malloc(sizeof(*kept) + loop->bytes);
		if (!kept)
			return false;
		memcpy(kept->value, loop->neutral, loop->bytes);
		rear.value = kept->value;
	}
	/* KTRT_ALWAYS: even if cancelled, the task must report that it has ended. */
	spawned = ktrt_spawn_begin(do_part, sizeof(rear), KTRT_ALWAYS);
	if (!spawned) {
		free(kept);
		return false;
	}
	at_add(&loop->parts, 1);
	*spawned = rear;
	ktrt_spawn_end(do_part, spawned);
	part->end = first;
	if (kept) {
		kept->next = *later;
		*later = kept;
	}
	return true;
}

static bool leave_half(struct part *part, struct later **later)
{
	return leave_from(part, part->first + (part->end - part->first) / 2,
			  later);
}

/*
 * The thread is an attached one.  If its visit is over, or the function is brief no more, it
 * leaves the rest to others, and the part ends here.
 *
 * The rest of a reduction is awaited on this stack.  The thread leaves it to workers, because
 * it might take it again there, and again, each time deeper on the stack.
 */
static void __attribute__((noinline))
leave_rest(struct worker *w, struct part *part, struct later **later)
{
	struct ktrt_task *task;

	if (part->first == part->end || w->current->flags & TASK_FINAL)
		return;
	if (w->core)
		visit_be_seen(w);
	if (!visit_is_over(w) && func_is_brief(loop_func(part->loop)))
		return;
	if (!leave_from(part, part->first, later) || !part->loop->reduce)
		return;
	task = deque_pop(&w->deque);
	if (!task)
		return;
	taken_from(w);
	visit_leave(w, task);
}

/* ---- chunks ---- */

/* Another thread may have changed it meanwhile; the next measurement is as good. */
static void adapt_grain(struct loop *loop, size_t grain, size_t nr,
			uint64_t took_ns)
{
	if (took_ns < CHUNK_NS / 2 && nr == grain && grain <= SIZE_MAX / 4)
		at_poke(&loop->grain, grain * 2);
	else if (took_ns > CHUNK_NS * 2 && grain > 1)
		at_poke(&loop->grain, grain / 2);
}

/* @took_ns: @together chunks; one if they adapt the grain */
static void chunk_ended(struct loop *loop, size_t grain, size_t nr,
			uint64_t took_ns, size_t together)
{
	func_classify(loop_func(loop), took_ns < CHUNK_BRIEF_NS * together);
	if (loop->measures)
		adapt_grain(loop, grain, nr, took_ns);
}

static inline int call_chunk(const struct part *part, size_t end)
{
	const struct loop *loop = part->loop;

	return loop->reduce
		       ? loop->reduce(part->first, end, part->value, loop->arg)
		       : loop->func(part->first, end, loop->arg);
}

static inline bool may_continue(const struct worker *w, const struct loop *loop)
{
	return !at_peek(&loop->stopped) && (likely(!at_peek(&rt.cancels)) ||
					    !task_is_cancelled(w->current));
}

/* If the grain is the caller's the first chunk is timed, of what attached threads do each
 * TIMED_TOGETHER as well. */
static size_t chunks_between(const struct worker *w, const struct loop *loop)
{
	if (loop->measures)
		return 0;
	return w->outer ? TIMED_TOGETHER - 1 : SIZE_MAX;
}

static int do_chunks(struct part *part, struct later **later)
{
	struct loop *loop = part->loop;
	uint64_t begin_ns = now_ns();
	struct worker *w = self_worker;
	size_t untimed = 0, together = 1;
	int code = 0;

	while (part->first < part->end && !code) {
		size_t grain = at_peek(&loop->grain), nr;

		if (!may_continue(w, loop))
			return at_peek(&loop->stopped) ? 0 : -ECANCELED;
		if (is_wanted(w, part, grain) && leave_half(part, later)) {
			if (together == 1)
				begin_ns = now_ns();
			continue;
		}
		nr = part->end - part->first;
		if (nr > grain)
			nr = grain;
		code = call_chunk(part, part->first + nr);
		part->first += nr;
		if (!untimed--) {
			uint64_t now = now_ns();

			chunk_ended(loop, grain, nr, now - begin_ns, together);
			untimed = chunks_between(w, loop);
			together = untimed + 1;
			begin_ns = now;
			if (unlikely(w->outer) && !code)
				leave_rest(w, part, later);
		}
	}
	if (code)
		at_store(&loop->stopped, 1);
	return code;
}

/* Combine the values in the order of the range, so that the operation need not be commutative.
 * All are combined, even after a failure, because a value may own memory. */
static int combine_later(const struct part *part, struct later *later)
{
	const struct loop *loop = part->loop;
	int code = 0, error;

	while (later) {
		struct later *next = later->next;

		error = loop->combine(part->value, later->value, loop->arg);
		if (error)
			error_keep(&code, error);
		free(later);
		later = next;
	}
	return code;
}

static int do_part(void *arg)
{
	struct part part __attribute__((cleanup(part_ended))) =
		*(struct part *)arg;
	struct later *later = NULL;
	int code = do_chunks(&part, &later);

	if (later) {
		error_keep(&code, ktrt_wait());
		error_keep(&code, combine_later(&part, later));
	}
	return code;
}

/* ---- calls ---- */

static int do_whole(void *arg)
{
	struct loop *loop = arg;

	loop->begun = true;
	return do_part(&loop->whole);
}

/* A part stays where it is until it begins. */
bool loop_has_part(const struct ktrt_task *task, ktrt_func *func)
{
	if (task->func == do_part)
		*func = loop_func(((const struct part *)task->arg)->loop);
	else if (task->func == do_whole)
		*func = loop_func(task->arg);
	else
		return false;
	return true;
}

/* A worker does the first part, and an attached thread if it is brief. */
static bool takes_part(const struct loop *loop)
{
	const struct worker *w = current_worker();

	return w && (!w->outer || func_is_brief(loop_func(loop)));
}

static int run_loop(struct loop *loop, size_t first, size_t end, void *value)
{
	/* The reference of the caller, dropped however this function ends. */
	struct part part __attribute__((cleanup(part_ended))) = { loop, first,
								  end, value };
	int code;

	loop->whole = part;
	code = group_run(do_whole, loop, takes_part(loop));
	/* The first part did not run: there was no memory for it, or it was cancelled. */
	if (!loop->begun)
		part_ended(&loop->whole);
	return code;
}

static struct loop *new_loop(size_t grain, const void *neutral, size_t bytes,
			     void *arg)
{
	struct loop *loop = bytes <= SIZE_MAX - sizeof(*loop)
				    ? malloc(sizeof(*loop) + bytes)
				    : NULL;

	if (!loop)
		return NULL;
	memset(loop, 0, sizeof(*loop));
	loop->grain = grain ? grain : 1;
	loop->measures = !grain;
	loop->parts = 2;
	loop->arg = arg;
	loop->bytes = bytes;
	if (bytes)
		memcpy(loop->neutral, neutral, bytes);
	return loop;
}

/* ---- loops that are one chunk ---- */

/* What is done of a loop in the middle of the task that calls it. */
struct here {
	struct part part; /* what is left of it */
	struct loop *
		rest; /* for what is not done here, or NULL: there is none yet */
	struct ktrt_group *group; /* if external events were added */
};

/* After so long the time of the whole loop is estimated. */
#define TRIAL_NS 1000

static bool is_cancelled(const struct worker *w)
{
	return unlikely(at_peek(&rt.cancels)) && task_is_cancelled(w->current);
}

/* Is the rest as brief as a chunk, if it goes on as it began?  @nr: done */
static bool rest_is_brief(const struct part *part, size_t nr, uint64_t took_ns)
{
	if (took_ns < TRIAL_NS)
		return true;
	return took_ns < CHUNK_NS &&
	       took_ns * (double)(part->end - part->first) <=
		       CHUNK_NS * (double)nr;
}

/* The grain is found anew, since the function may take longer than in the last loop. */
static int measure_here(struct worker *w, struct part *part)
{
	uint64_t begin_ns = now_ns(), before_ns = begin_ns, now = begin_ns;
	struct loop *loop = part->loop;
	size_t begin = part->first;
	int code = 0;

	do {
		size_t grain = loop->grain, nr = part->end - part->first;

		if (is_cancelled(w))
			return -ECANCELED;
		nr = nr < grain ? nr : grain;
		code = call_chunk(part, part->first + nr);
		part->first += nr;
		now = now_ns();
		chunk_ended(loop, grain, nr, now - before_ns, 1);
		before_ns = now;
	} while (!code && part->first < part->end &&
		 rest_is_brief(part, part->first - begin, now - begin_ns));
	return code;
}

/* It is timed as long as something depends on it. */
static int do_one_chunk(struct worker *w, struct part *part)
{
	struct loop *loop = part->loop;
	bool timed = w->outer || !func_is_brief(loop_func(loop));
	uint64_t begin_ns = timed ? now_ns() : 0;
	int code;

	if (is_cancelled(w))
		return -ECANCELED;
	code = call_chunk(part, part->end);
	part->first = part->end;
	if (timed)
		func_classify(loop_func(loop),
			      now_ns() - begin_ns < CHUNK_BRIEF_NS);
	return code;
}

/* Without memory it is done here. */
static int do_rest(struct worker *w, struct here *here)
{
	struct part *part = &here->part;
	const struct loop *loop = part->loop;
	struct loop *rest = here->rest;

	if (!rest)
		rest = new_loop(0, NULL, 0, loop->arg);
	if (!rest)
		return do_one_chunk(w, part);
	here->rest = NULL;
	rest->func = loop->func;
	rest->grain = loop->grain;
	return run_loop(rest, part->first, part->end, part->value);
}

static int do_here(void *arg)
{
	struct worker *w = self_worker;
	struct here *here = arg;
	struct part *part = &here->part;
	int code = part->loop->measures ? measure_here(w, part)
					: do_one_chunk(w, part);

	if (!code && part->first < part->end)
		code = do_rest(w, here);
	/* The tasks that it made. */
	error_keep(&code, task_wait(w, w->current));
	here->group = w->current->group;
	return code;
}

bool loop_is_here(const struct ktrt_task *task)
{
	return task->func == do_here;
}

/*
 * Is the caller in a task, and the loop one chunk: as the caller says, or, if chunks of the
 * function were brief so far, maybe?  An attached thread does only what is brief.  What
 * inherits TASK_FINAL needs a task.
 */
static bool may_be_here(const struct worker *w, const struct loop *loop,
			size_t first, size_t end)
{
	if (!w || !w->core || w->current->flags & TASK_FINAL)
		return false;
	if (!loop->measures && end - first > loop->grain)
		return false;
	return (!loop->measures && !w->outer) || func_is_brief(loop_func(loop));
}

static void free_rest(struct here *here)
{
	free(here->rest);
}

/* @rest: as in struct here */
static int run_here(struct worker *w, struct part part, struct loop *rest)
{
	struct here here
		__attribute__((cleanup(free_rest))) = { part, rest, NULL };
	struct ktrt_task *task = task_take_blank(w);
	int code = task ? task_call(w, task, do_here, &here) : -ENOMEM;

	if (unlikely(here.group))
		ktrt_group_free(here.group);
	return code;
}

int ktrt_for(size_t first, size_t end, size_t grain, ktrt_range_func func,
	     void *arg)
{
	struct loop one = { .func = func, .arg = arg, .measures = !grain },
		    *loop;
	struct worker *w = current_worker();

	if (!func)
		return -EINVAL;
	if (!rt_runs())
		return -ESRCH;
	if (first >= end)
		return 0;
	one.grain = grain ? grain : 1;
	if (may_be_here(w, &one, first, end))
		return run_here(w, (struct part){ &one, first, end, NULL },
				NULL);
	loop = new_loop(grain, NULL, 0, arg);
	if (!loop)
		return -ENOMEM;
	loop->func = func;
	return run_loop(loop, first, end, NULL);
}

int ktrt_reduce(size_t first, size_t end, size_t grain, ktrt_reduce_func func,
		ktrt_combine_func combine, void *value, size_t bytes, void *arg)
{
	struct worker *w = current_worker();
	struct loop *loop;

	if (!func || !combine || (!value && bytes))
		return -EINVAL;
	if (!rt_runs())
		return -ESRCH;
	if (first >= end)
		return 0;
	loop = new_loop(grain, value, bytes, arg);
	if (!loop)
		return -ENOMEM;
	loop->reduce = func;
	loop->combine = combine;
	if (may_be_here(w, loop, first, end))
		return run_here(w, (struct part){ loop, first, end, value },
				loop);
	return run_loop(loop, first, end, value);
}
