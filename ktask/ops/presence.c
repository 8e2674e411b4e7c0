/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Windows of pages that are made ahead: see presence.h.  The jobs are those of
 * populate, so that policy, alignment and what was measured are the same.
 *
 * Locking: presence.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "advise.h"
#include "fault.h"
#include "mapping.h"
#include "populate.h"
#include "presence.h"
#include "util/present_samples.h"

/* The part that is sampled at once: a sixteenth of the range, and twice as much while it
 * is present, because a sample costs as much as many pages. */
#define SAMPLED_PARTS 16
#define SAMPLED_MIN (32 * MIB)
/* A window is half of the rest.  At the end of each window threads wait for each other
 * (half a millisecond), and during the calls for the last one no page is made.  Devices
 * take less than half of the time of making pages. */
#define WINDOW_MIN (8 * MIB)
#define WINDOW_MAX (1024 * MIB)

/* Chunk edges that are believed for the whole range: transparent huge pages. */
#define ALIGN_MAX (2 * MIB)

/* Populated in one call where the lock may be wanted: some 100 us. */
#define STEP_BYTES (256 * KIB)

static uintptr_t page_floor(uintptr_t pos)
{
	return pos & ~(uintptr_t)(op_page_bytes() - 1);
}

static uintptr_t page_ceiling(uintptr_t pos)
{
	return page_floor(pos + op_page_bytes() - 1);
}

/* Errors that say that this memory cannot be populated, not that it has a hole or
 * there is none: the device may take it all the same. */
static bool is_for_device(int error)
{
	return error == -EFAULT || error == -EINVAL;
}

void presence_begin(struct presence *presence, const struct op_job *range,
		    uintptr_t base, size_t unit_bytes)
{
	size_t sampled = range->len / SAMPLED_PARTS;

	memset(presence, 0, sizeof(*presence));
	if (sampled < SAMPLED_MIN)
		sampled = SAMPLED_MIN;
	if (sampled > WINDOW_MAX)
		sampled = WINDOW_MAX;
	presence->ready = (uintptr_t)range->addr;
	presence->next = presence->ready;
	presence->end = presence->ready + range->len;
	presence->base = base;
	presence->unit_bytes = unit_bytes;
	presence->sampled_bytes = sampled;
	presence->flags = range->flags;
	presence->opts = range->opts;
	presence->watch = range->watch;
	presence->sum.struct_size = sizeof(presence->sum);
}

/* Return: where a window of @bytes ends, or one of a unit. */
static uintptr_t window_end(const struct presence *presence, size_t bytes)
{
	uintptr_t start = presence->ready, end;

	if (bytes < presence->unit_bytes)
		bytes = presence->unit_bytes;
	if (presence->end - start <= bytes)
		return presence->end;
	end = start + bytes - presence->base;
	return presence->base +
	       end / presence->unit_bytes * presence->unit_bytes;
}

/* Two units at least, so that two threads can make them. */
static uintptr_t made_end(const struct presence *presence)
{
	size_t bytes = (presence->end - presence->ready) / 2;

	if (bytes > WINDOW_MAX)
		bytes = WINDOW_MAX;
	if (bytes < WINDOW_MIN)
		bytes = WINDOW_MIN;
	if (bytes / 2 < presence->unit_bytes)
		bytes = 2 * presence->unit_bytes;
	return window_end(presence, bytes);
}

/* A chunk of a window. */
static int make_chunk(void *start, void *end, void *arg)
{
	const struct op_job *job = arg;
	const struct presence *presence = job->state;
	char *pos = start, *next;
	int error = 0;

	if (!presence->may_touch)
		return populate_chunk(start, end, arg);
	for (; pos < (char *)end && !error; pos = next) {
		next = (char *)end - pos > (ptrdiff_t)STEP_BYTES
			       ? pos + STEP_BYTES
			       : end;
		error = presence->yields ? populate_touch_chunk(pos, next, arg)
					 : populate_chunk(pos, next, arg);
	}
	return error;
}

/* Asked once: reading the mappings takes 1 ms in an emulated guest.  Where a part of the
 * range has larger pages than usual, windows in the other parts have shorter edges. */
static void align_job(struct presence *presence, struct op_job *job)
{
	struct op_job rest = *job;

	if (!presence->align) {
		rest.len = page_ceiling(presence->end) - (uintptr_t)rest.addr;
		op_populate.align(&rest);
		if (rest.align > ALIGN_MAX) {
			op_populate.align(job);
			return;
		}
		presence->align = rest.align;
		presence->step_bytes = rest.step_bytes;
	}
	job->align = presence->align;
	job->step_bytes = presence->step_bytes;
}

static void init_job(struct presence *presence)
{
	struct op_job *job = &presence->job;

	memset(job, 0, sizeof(*job));
	memset(&presence->result, 0, sizeof(presence->result));
	presence->result.struct_size = sizeof(presence->result);
	job->op = &op_populate;
	job->addr = (char *)page_floor(presence->ready);
	job->len = page_ceiling(presence->next) - (uintptr_t)job->addr;
	job->flags = presence->flags;
	job->min_chunk = op_populate.min_chunk;
	job->opts = presence->opts;
	job->watch = presence->watch;
	job->result = &presence->result;
	job->state = presence;
	align_job(presence, job);
}

static bool can_be_ahead(void)
{
	return advise_known(MADV_POPULATE_WRITE);
}

/* One call returns the nodes of all samples, in a seventh of the time of a mincore() for
 * each.  mincore() then checks samples without a node: it also sees pages of files that
 * are not mapped here. */
static bool check_samples(uintptr_t start, uintptr_t end)
{
	void *samples[PRESENT_SAMPLES + 1];
	int nodes[PRESENT_SAMPLES + 1];

	for (unsigned i = 0; i <= PRESENT_SAMPLES; i++)
		samples[i] = (void *)sample_pos(start, end, i);
	if (syscall(SYS_move_pages, 0, PRESENT_SAMPLES + 1ul, samples, NULL,
		    nodes, 0))
		return samples_are_present(start, end);
	for (unsigned i = 0; i <= PRESENT_SAMPLES; i++)
		if (nodes[i] < 0 && !page_is_present((uintptr_t)samples[i]))
			return false;
	return true;
}

/* Join windows whose pages are all present: the caller then needs fewer pieces, and each
 * piece costs a call. */
static void skip_present(struct presence *presence)
{
	while (presence->next > presence->ready &&
	       check_samples(presence->ready, presence->next)) {
		presence->ready = presence->next;
		presence->sampled_bytes *= 2;
		presence->next = window_end(presence, presence->sampled_bytes);
	}
}

/* If this fails, calls of the device wait for populating chunks. */
static void prepare_touch(struct presence *presence)
{
	if (presence->may_yield && !presence->may_touch)
		presence->may_touch = !fault_get(&presence->fault_token);
}

/* A window that cannot be begun is made when it is reached, and so is one that a single
 * thread makes as fast. */
static void begin_window(struct presence *presence)
{
	struct op_job *job = &presence->job;

	presence->next = window_end(presence, presence->sampled_bytes);
	if (presence->judged)
		return;
	skip_present(presence);
	if (presence->next == presence->ready)
		return;
	presence->next = made_end(presence);
	init_job(presence);
	if (op_is_small(job) || !can_be_ahead())
		return;
	prepare_touch(presence);
	mapping_first_page(job, make_chunk);
	op_start_job(job, make_chunk, &presence->started);
}

static void add_window(struct presence *presence)
{
	struct op_job sum = { .addr = presence->job.addr,
			      .result = &presence->sum };

	op_add_result(&sum, &presence->result);
}

static int wait_window(struct presence *presence)
{
	int error = 0;

	if (presence->started) {
		error = op_wait_job(&presence->job, presence->started);
		presence->started = NULL;
		add_window(presence);
	} else if (!presence->judged && presence->job.addr && !can_be_ahead()) {
		/* Too old a kernel: all threads touch pages now. */
		error = op_populate.around(&presence->job);
		add_window(presence);
	}
	memset(&presence->job, 0, sizeof(presence->job));
	if (is_for_device(error)) {
		presence->judged = true;
		error = 0;
	}
	if (!error)
		presence->ready = presence->next;
	return error;
}

int presence_reach(struct presence *presence, uintptr_t pos,
		   uintptr_t *fail_pos)
{
	int error = 0;

	*fail_pos = 0;
	while (presence->ready <= pos && !error) {
		if (presence->next == presence->ready)
			begin_window(presence);
		if (presence->ready <= pos)
			error = wait_window(presence);
	}
	if (error)
		*fail_pos = (uintptr_t)presence->result.fail_pos;
	else if (presence->next == presence->ready &&
		 presence->ready < presence->end)
		begin_window(presence);
	return error;
}

void presence_may_yield(struct presence *presence)
{
	presence->may_yield = true;
}

void presence_yield_lock(struct presence *presence, bool yields)
{
	atomic_store_explicit(&presence->yields, yields, memory_order_relaxed);
}

static void end_window(struct presence *presence)
{
	ktask_cancel(presence->started);
	op_wait_job(&presence->job, presence->started);
	presence->started = NULL;
	add_window(presence);
}

void presence_end(struct presence *presence)
{
	if (presence->started)
		end_window(presence);
	if (presence->may_touch)
		fault_put(presence->fault_token);
	presence->may_touch = false;
}

int presence_make(uintptr_t start, uintptr_t end, unsigned flags,
		  uintptr_t *fail_pos)
{
	int advice = flags & KTASK_POPULATE_READ ? MADV_POPULATE_READ
						 : MADV_POPULATE_WRITE;
	int error;

	if (!can_be_ahead() || check_samples(start, end))
		return 0;
	error = advise_range(page_floor(start), page_ceiling(end), advice,
			     fail_pos);
	return is_for_device(error) ? 0 : error;
}
