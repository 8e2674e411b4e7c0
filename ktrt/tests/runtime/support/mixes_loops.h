/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Loops and reductions in the tasks of a mix (mixes.h): each counts its indices, and a
 * reduction's operation does not commute.
 */
#ifndef RUNTIME_TEST_MIXES_LOOPS_H
#define RUNTIME_TEST_MIXES_LOOPS_H

#include "mixes.h"

struct loop {
	struct step *step;
	struct action *action;
};

static int do_indices(size_t first, size_t end, void *arg)
{
	struct loop *loop = arg;
	struct action *action = loop->action;

	for (; first < end; first++) {
		bump(action->counts[first]);
		touch_all(loop->step->mix, action->first, action->nr);
		if (first == action->fails_at)
			return FAILURE;
	}
	return 0;
}

/* x * factor + term; one after the other does not commute. */
struct map {
	uint64_t factor, term;
};

static int join_maps(void *into, void *from, void *arg)
{
	struct map *first = into, *next = from;

	first->factor *= next->factor;
	first->term = first->term * next->factor + next->term;
	return 0;
}

static int reduce_indices(size_t first, size_t end, void *value, void *arg)
{
	for (size_t i = first; i < end; i++) {
		struct map map = { 2 * i + 3, i };

		join_maps(value, &map, arg);
	}
	return do_indices(first, end, arg);
}

static int reduce_all(struct step *step, struct action *action)
{
	struct loop loop = { step, action };
	struct map value = { 1, 0 }, serial = { 1, 0 };
	int code = ktrt_reduce(0, INDICES, action->grain, reduce_indices,
			       join_maps, &value, sizeof(value), &loop);

	for (size_t i = 0; i < INDICES; i++) {
		struct map map = { 2 * i + 3, i };

		join_maps(&serial, &map, NULL);
	}
	expect_that(step->mix, code || !memcmp(&value, &serial, sizeof(value)),
		    "a reduced value is wrong");
	return code;
}

#endif /* RUNTIME_TEST_MIXES_LOOPS_H */
