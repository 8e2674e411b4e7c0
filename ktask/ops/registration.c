/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The list of pieces, and the calls of the device's functions: registration.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "registration.h"
#include "unwinding.h"
#include "util/assertion.h"
#include "util/clock.h"

#define DEFAULT_STALL_US 50000

struct ktask_registration *
registration_new(uintptr_t start, size_t len,
		 const struct ktask_register_ctl *ctl, size_t unit_bytes,
		 uintptr_t base)
{
	struct ktask_registration *registration =
		calloc(1, sizeof(*registration));
	unsigned stall_us = ctl->stall_us ? ctl->stall_us : DEFAULT_STALL_US;

	if (!registration)
		return NULL;
	pthread_mutex_init(&registration->lock, NULL);
	registration->ctl = *ctl;
	registration->limits.unit_bytes = unit_bytes;
	registration->limits.max_bytes = ctl->max_piece_bytes;
	registration->limits.stall_sec = stall_us / 1e6;
	registration->base = base;
	registration->start = start;
	registration->end = start + len;
	registration->pid = getpid();
	return registration;
}

void registration_free(struct ktask_registration *registration)
{
	pthread_mutex_destroy(&registration->lock);
	free(registration->pieces);
	free(registration);
}

bool registration_is_foreign(const struct ktask_registration *registration)
{
	return getpid() != registration->pid;
}

uintptr_t registration_next(struct ktask_registration *registration,
			    uintptr_t pos, uintptr_t end)
{
	/* The first piece may begin within a unit. */
	size_t before =
		(pos - registration->base) % registration->limits.unit_bytes;
	size_t bytes;

	pthread_mutex_lock(&registration->lock);
	bytes = piece_size(&registration->limits, registration->sec_per_byte,
			   registration->last_bytes, end - pos + before);
	pthread_mutex_unlock(&registration->lock);
	return pos - before + bytes;
}

/* Return: for how long two calls have been made at once until now. */
static uint64_t note_beside(struct ktask_registration *registration)
{
	uint64_t now_ns = op_now_ns();

	util_assert_held(&registration->lock);
	if (registration->nr_pending > 1)
		registration->beside_ns += now_ns - registration->changed_ns;
	registration->changed_ns = now_ns;
	return registration->beside_ns;
}

static size_t pieces_needed(struct ktask_registration *registration)
{
	util_assert_held(&registration->lock);
	return registration->nr_pieces + registration->nr_pending + 1;
}

/* Returns the list that is not used any more. */
static struct piece *move_pieces(struct ktask_registration *registration,
				 struct piece *pieces, size_t capacity)
{
	struct piece *former = registration->pieces;

	util_assert_held(&registration->lock);
	if (capacity <= registration->capacity)
		return pieces;
	if (registration->nr_pieces)
		memcpy(pieces, former,
		       registration->nr_pieces * sizeof(*pieces));
	registration->pieces = pieces;
	registration->capacity = capacity;
	return former;
}

/* Leaves the lock meanwhile: to allocate may take long, most of all in a helper of the
 * lowest priority. */
static int extend_list(struct ktask_registration *registration, size_t capacity)
{
	struct piece *pieces;

	util_assert_held(&registration->lock);
	pthread_mutex_unlock(&registration->lock);
	pieces = malloc(capacity * sizeof(*pieces));
	pthread_mutex_lock(&registration->lock);
	if (!pieces)
		return -ENOMEM;
	pieces = move_pieces(registration, pieces, capacity);
	pthread_mutex_unlock(&registration->lock);
	free(pieces);
	pthread_mutex_lock(&registration->lock);
	return 0;
}

/* Room for a piece before it is registered: it must not be lost behind it. */
static int reserve_piece(struct ktask_registration *registration,
			 uint64_t *beside_ns)
{
	size_t needed;
	int error = 0;

	pthread_mutex_lock(&registration->lock);
	while (!error &&
	       (needed = pieces_needed(registration)) > registration->capacity)
		error = extend_list(registration, 2 * needed + 14);
	*beside_ns = note_beside(registration);
	registration->nr_pending += !error;
	pthread_mutex_unlock(&registration->lock);
	return error;
}

static int call_device(struct ktask_registration *registration,
		       ktask_register_func func, uintptr_t start, uintptr_t end,
		       struct call_cost *took)
{
	/* Seen by whoever unwinds the stack. */
	unwinding_guard(forbidden) =
		func == registration->ctl.unregister_func ||
		registration->ctl.flags & KTASK_REGISTER_PARALLEL;
	uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t wall_ns = op_now_ns();
	int error =
		func((void *)start, (void *)end, registration->ctl.func_arg);

	forbidden = false;
	took->bytes = end - start;
	took->wall_ns = op_now_ns() - wall_ns;
	took->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	return error;
}

static void note_success(struct ktask_registration *registration,
			 uintptr_t start, uintptr_t end,
			 const struct call_cost *took)
{
	size_t bytes = took->bytes;

	util_assert_held(&registration->lock);
	util_assert(registration->nr_pieces < registration->capacity);
	registration->pieces[registration->nr_pieces++] =
		(struct piece){ start, end };
	registration->bytes += bytes;
	registration->last_bytes = bytes;
	registration->sec_per_byte = piece_cost(
		registration->sec_per_byte, bytes, (double)took->wall_ns / 1e9);
	if (bytes > registration->largest_bytes)
		registration->largest_bytes = bytes;
	if (took->wall_ns > registration->longest_ns)
		registration->longest_ns = took->wall_ns;
	registration->calls_ns += took->wall_ns;
	if (registration->seen)
		calls_seen_add(registration->seen, took);
}

int registration_add(struct ktask_registration *registration, uintptr_t start,
		     uintptr_t end)
{
	struct call_cost took;
	uint64_t beside_ns;
	int error = reserve_piece(registration, &beside_ns);

	if (error)
		return error;
	error = call_device(registration, registration->ctl.register_func,
			    start, end, &took);
	if (registration_is_foreign(registration))
		return -ECANCELED;
	pthread_mutex_lock(&registration->lock);
	took.beside_ns = note_beside(registration) - beside_ns;
	registration->nr_pending--;
	registration->cpu_ns += took.cpu_ns;
	if (!error)
		note_success(registration, start, end, &took);
	pthread_mutex_unlock(&registration->lock);
	return error;
}

void registration_note_failure(struct ktask_registration *registration,
			       uintptr_t pos, int error)
{
	pthread_mutex_lock(&registration->lock);
	if (!registration->fail_pos || pos < registration->fail_pos) {
		registration->fail_pos = pos;
		registration->fail_error = error;
	}
	pthread_mutex_unlock(&registration->lock);
}

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

void registration_sort(struct ktask_registration *registration)
{
	if (registration->nr_pieces)
		qsort(registration->pieces, registration->nr_pieces,
		      sizeof(*registration->pieces), compare_pieces);
}

int registration_take_back(struct ktask_registration *registration,
			   size_t index)
{
	struct piece piece = registration->pieces[index];
	struct call_cost took;
	int error = call_device(registration, registration->ctl.unregister_func,
				piece.start, piece.end, &took);

	if (registration_is_foreign(registration))
		return -ECANCELED;
	pthread_mutex_lock(&registration->lock);
	registration->bytes -= piece.end - piece.start;
	registration->cpu_ns += took.cpu_ns;
	pthread_mutex_unlock(&registration->lock);
	return error;
}

int registration_take_last(struct ktask_registration *registration)
{
	int error = registration_take_back(registration,
					   registration->nr_pieces - 1);

	registration->nr_pieces--;
	return error;
}

void registration_undo(struct ktask_registration *registration)
{
	while (registration->nr_pieces &&
	       !registration_is_foreign(registration))
		registration_take_last(registration);
}
