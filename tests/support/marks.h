/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job whose units are bytes of an array: each chunk marks its own, undo
 * unmarks, and a chosen unit fails.  Owns what "each unit once" means in the
 * tests of the job API.
 */
#ifndef MARKS_H
#define MARKS_H

#include <string.h>

#include <ktask/ktask.h>

#include "ktest.h"

#define MARKS_MAX (1 << 20)

struct marks {
	unsigned char done[MARKS_MAX]; /* times done, counted */
	unsigned char undone[MARKS_MAX];
	size_t nr;
	size_t fail_at; /* the chunk with this unit fails; nr: none */
	size_t fail_at_2; /* and this */
	int error; /* with this code */
	int tell; /* say where, by ktask_fail_at() */
	unsigned char *last_undo; /* where undo ended last */
	int undo_in_order;
	unsigned spin; /* turns per unit */
};

static inline void marks_reset(struct marks *marks, size_t nr)
{
	memset(marks, 0, sizeof(*marks));
	marks->nr = nr;
	marks->fail_at = nr;
	marks->fail_at_2 = nr;
	marks->undo_in_order = 1;
}

static inline int marks_in(const struct marks *marks, const void *start,
			   const void *end, size_t unit)
{
	const unsigned char *at = marks->done + unit;

	return unit < marks->nr && at >= (const unsigned char *)start &&
	       at < (const unsigned char *)end;
}

static inline int marks_chunk(void *start, void *end, void *arg)
{
	struct marks *marks = arg;

	for (volatile unsigned i = 0;
	     i < marks->spin * (unsigned)((char *)end - (char *)start); i++)
		;
	if (marks_in(marks, start, end, marks->fail_at) ||
	    marks_in(marks, start, end, marks->fail_at_2)) {
		if (marks->tell && marks_in(marks, start, end, marks->fail_at))
			ktask_fail_at(marks->done + marks->fail_at);
		return marks->error;
	}
	for (unsigned char *at = start; at < (unsigned char *)end; at++)
		(*at)++;
	return 0;
}

static inline void marks_undo(void *start, void *end, void *arg)
{
	struct marks *marks = arg;

	if ((unsigned char *)start < marks->last_undo)
		marks->undo_in_order = 0;
	marks->last_undo = end;
	for (unsigned char *at = start; at < (unsigned char *)end; at++)
		marks->undone[at - marks->done]++;
}

/* All done, nothing undone. */
static inline void marks_check_complete(const struct marks *marks)
{
	for (size_t i = 0; i < marks->nr; i++) {
		assert_int_equal(marks->done[i], 1);
		assert_int_equal(marks->undone[i], 0);
	}
}

/* What was done, at most once, was undone once, and nothing else. */
static inline void marks_check_undone(const struct marks *marks)
{
	for (size_t i = 0; i < marks->nr; i++) {
		assert_true(marks->done[i] <= 1);
		assert_int_equal(marks->undone[i], marks->done[i]);
	}
	assert_true(marks->undo_in_order);
}

#endif /* MARKS_H */
