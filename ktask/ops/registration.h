/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The pieces of a range that are registered with a device, and the calls of the device's
 * functions.  Each call is timed.  A piece whose call succeeded is kept, and is
 * unregistered exactly once.
 *
 * Locking: "L" fields are protected by the registration's lock, which is never held
 * while a function of the program runs.  The others are written by the caller
 * while no helper works.
 */
#ifndef OPS_REGISTRATION_H
#define OPS_REGISTRATION_H

#include <ktask/register.h>

#include "calls_at_once.h"
#include "op.h"
#include "piece_size.h"

struct piece {
	uintptr_t start;
	uintptr_t end;
};

struct ktask_registration {
	pthread_mutex_t lock;
	struct ktask_register_ctl ctl;
	struct piece_limits limits;
	uintptr_t base; /* pieces begin at multiples of a unit from here */
	uintptr_t start;
	uintptr_t end;
	pid_t pid; /* whose memory is registered */
	struct piece *pieces; /* L; sorted between two calls of the library */
	size_t nr_pieces; /* L */
	size_t nr_pending; /* L; calls that are made now: room for pieces is kept */
	uint64_t changed_ns; /* L; when nr_pending did last */
	uint64_t beside_ns; /* L; so long two calls or more were being made */
	size_t capacity; /* L */
	double sec_per_byte; /* L */
	size_t last_bytes; /* L */
	uint64_t bytes; /* L */
	uint64_t largest_bytes; /* L */
	uint64_t calls_ns; /* L */
	uint64_t longest_ns; /* L */
	uint64_t cpu_ns; /* L */
	struct calls_seen *seen; /* L; of a trial; NULL: there is none */
	/* Piece that failed: to register the lowest, to unregister the first; 0: none; L */
	uintptr_t fail_pos;
	int fail_error; /* L */
};

/** registration_new - of @ctl, which was checked; NULL without memory */
struct ktask_registration *
registration_new(uintptr_t start, size_t len,
		 const struct ktask_register_ctl *ctl, size_t unit_bytes,
		 uintptr_t base);

void registration_free(struct ktask_registration *registration);

/** registration_is_foreign - this is the child of a fork */
bool registration_is_foreign(const struct ktask_registration *registration);

/** registration_next - end of the piece to be registered from @pos, up to @end */
uintptr_t registration_next(struct ktask_registration *registration,
			    uintptr_t pos, uintptr_t end);

/**
 * registration_add - register [start, end) by a call of the program's function
 *
 * Return: 0; -ENOMEM, with no call made; what the function returned; -ECANCELED in
 * the child of a fork, where nothing is kept.
 */
int registration_add(struct ktask_registration *registration, uintptr_t start,
		     uintptr_t end);

/** registration_note_failure - to register, at @pos; the lowest is kept */
void registration_note_failure(struct ktask_registration *registration,
			       uintptr_t pos, int error);

/** registration_sort - by address, after calls in any order */
void registration_sort(struct ktask_registration *registration);

/** registration_take_back - call the program's function for one piece */
int registration_take_back(struct ktask_registration *registration,
			   size_t index);

/** registration_take_last - the same for the last piece, which is then gone */
int registration_take_last(struct ktask_registration *registration);

/** registration_undo - the same for all pieces; nobody could be told of errors */
void registration_undo(struct ktask_registration *registration);

#endif /* OPS_REGISTRATION_H */
