/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory for the dependences of tasks that have more than their record holds.  The maker
 * takes it and whoever completes the task gives it back.  malloc() is for one thread that
 * does both: here each gives the other whole batches (record_pool.h).
 *
 * Locking: rt.h; what is in here is M and B, then E.
 */
#ifndef RUNTIME_ACCESS_ARRAYS_H
#define RUNTIME_ACCESS_ARRAYS_H

#include "rt.h"

void access_arrays_init(void);
void access_arrays_destroy(void);
size_t access_arrays_bytes(void);
/* The thread ends. */
void access_arrays_drain(struct worker *w);

/* NULL without memory */
struct access *access_array_get(struct worker *w, size_t nr);
/* @w: NULL by a thread that is no worker */
void access_array_put(struct worker *w, struct access *each);

#endif /* RUNTIME_ACCESS_ARRAYS_H */
