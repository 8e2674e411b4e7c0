/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What random nested mixes are made of, and uses of data in them: a sequential program is
 * made up first (mixes_make.h), then run as tasks, and what was seen is judged at the end
 * (mixes_judge.h).  Does not own running (the test).
 *
 * Each use of a datum is a *touch*; touches lie in the order of the sequential program.
 * Uses of one datum that may change places are of one epoch.  What a touch notes is
 * relaxed or plain, so that the thread sanitizer sees whether the runtime ordered it.
 */
#ifndef RUNTIME_TEST_MIXES_H
#define RUNTIME_TEST_MIXES_H

#include "runs.h"

#include <sched.h>

#define DATA 8 /* that tasks name */
#define ONCES \
	2 /* graphs that are made once, each for the datum of its number */
#define CELLS 3 /* data of a graph's own */
#define ALL_DATA (DATA + ONCES * CELLS)
#define SUMS 2
#define DEPS 4
#define LEVELS 4 /* below the root */
#define CHILDREN 5
#define STEPS 60
#define ACTIONS (STEPS * 10)
#define TOUCHES (STEPS * DATA * 6)
#define GROUPS \
	(STEPS + 2) /* the first two are of all; the second may be cancelled */
#define MEMBERS 8 /* nodes of a graph that is made once */
#define RUNS 24
#define INDICES 24 /* of a loop */
#define FAILURE 77

#define peek(object) __atomic_load_n(&(object), __ATOMIC_RELAXED)
#define poke(object, value) __atomic_store_n(&(object), value, __ATOMIC_RELAXED)
#define bump(object) __atomic_fetch_add(&(object), 1, __ATOMIC_RELAXED)

struct datum {
	uint64_t value; /* plain: dependences alone must order it */
	int users; /* each 1, or 1000 of who has it alone */
	unsigned epoch; /* of who came last */
	struct ktrt_reduction sums[SUMS];
};

struct touch {
	unsigned datum, mode, sum, epoch;
	unsigned done; /* how often; above 1: by a loop */
	uint64_t mark, seen;
};

struct group {
	struct ktrt_group *made;
	unsigned cancels, cancelled; /* begun; over */
};

enum kind {
	USE,
	SPAWN,
	WAIT,
	WAIT_FOR,
	GROUP_WAIT,
	CANCEL,
	RELEASE,
	EVENT,
	YIELD,
	LOOP,
	REDUCE,
	RUN_ONCE,
};

/* Data that a task names, all in one dependence. */
struct name {
	unsigned first, nr, mode, sum;
	bool weak, as_range;
	bool gone; /* released, while the body is made up */
};

struct action {
	enum kind kind;
	unsigned first, nr; /* touches */
	struct step *child;
	struct name name;
	unsigned name_at; /* RELEASE: its number */
	struct group *group;
	unsigned steps_from, steps_end; /* GROUP_WAIT: whom it tells of */
	unsigned counts[INDICES], grain, fails_at;
	struct run *run;
	unsigned yields; /* YIELD: so many in a row */
	bool executed;
	int code;
	uint64_t result; /* REDUCE */
	struct action *next;
};

struct step {
	struct mix *mix;
	struct step *parent;
	struct name names[DEPS];
	unsigned nr_names;
	bool undeferred, final, inside_final, early, twice, weak_first;
	bool always, fails, passes_on;
	int priority, node;
	struct group *group, *own; /* that it is in; for its children */
	struct action *actions, **end;
	/* What became of it. */
	bool spawned, cancelled_before, failed;
	unsigned ran, done, too_late;
	int cancelled, code;
};

/* One run of a graph that was made once. */
struct run {
	unsigned first[MEMBERS]; /* touches */
	unsigned fails; /* MEMBERS: none does */
	unsigned ran[MEMBERS];
	int cancelled[MEMBERS];
};

struct member {
	struct once *once;
	unsigned at, nr, data[DEPS], modes[DEPS];
	unsigned after; /* edges: a bit for each member */
	unsigned way;
	bool always;
};

struct once {
	struct mix *mix;
	struct ktrt_graph *made;
	struct member members[MEMBERS];
	struct run *current;
};

struct mix {
	uint64_t seed, random;
	bool with_failures, with_cancels, with_ranges;
	unsigned nr_steps, nr_actions, nr_touches, nr_groups, nr_runs;
	unsigned epochs[ALL_DATA], keys[ALL_DATA];
	struct datum data[ALL_DATA];
	struct step steps[STEPS];
	struct action actions[ACTIONS];
	struct touch touches[TOUCHES];
	struct group groups[GROUPS];
	struct once onces[ONCES];
	struct run runs[RUNS];
};

static unsigned nr_wrong;

/* Nothing is thrown: that would leave a task. */
static void __attribute__((unused))
tell_fault(const struct mix *mix, const char *why)
{
	if (more(nr_wrong) <= 20)
		fprintf(stderr, "# mix %llu: %s\n",
			(unsigned long long)mix->seed, why);
}

static inline void expect_that(const struct mix *mix, bool holds,
			       const char *what)
{
	if (!holds)
		tell_fault(mix, what);
}

static inline bool has_alone(unsigned mode)
{
	return mode == KTRT_OUT || mode == KTRT_INOUT;
}

static inline uint64_t derive_value(uint64_t old, uint64_t mark)
{
	return (old ^ mark) * 0x9e3779b97f4a7c15u + 1;
}

/* ---- using data ---- */

static inline int user_weight(unsigned mode)
{
	return mode == KTRT_IN || mode == KTRT_REDUCTION ? 1 : 1000;
}

/* Gives others time to do what they must not. */
static inline void dawdle_some(uint64_t mark)
{
	if (mark % 61 == 0)
		sched_yield();
	for (unsigned i = 0; i < mark % 64; i++)
		__asm__ volatile("" ::: "memory");
}

static void change_datum(struct mix *mix, struct datum *datum,
			 struct touch *touch)
{
	uint64_t *copy, old = 0;

	if (touch->mode == KTRT_REDUCTION) {
		copy = ktrt_reduction_copy(&datum->sums[touch->sum]);
		expect_that(mix, copy, "there is no copy to add to");
		if (copy)
			*copy += touch->mark;
		return;
	}
	if (touch->mode & KTRT_IN)
		touch->seen = old = datum->value;
	dawdle_some(touch->mark);
	if (touch->mode == KTRT_COMMUTATIVE)
		datum->value = old + touch->mark;
	else if (touch->mode & KTRT_OUT)
		datum->value = derive_value(old, touch->mark);
}

static void touch_datum(struct mix *mix, struct touch *touch)
{
	struct datum *datum = &mix->data[touch->datum];
	int mine = user_weight(touch->mode);
	int users = __atomic_fetch_add(&datum->users, mine, __ATOMIC_RELAXED);

	expect_that(mix, mine > 1 ? !users : users < 1000,
		    "a writer is not alone");
	expect_that(mix, peek(datum->epoch) <= touch->epoch,
		    "later uses came first");
	poke(datum->epoch, touch->epoch);
	change_datum(mix, datum, touch);
	bump(touch->done);
	__atomic_fetch_sub(&datum->users, mine, __ATOMIC_RELAXED);
}

static void touch_all(struct mix *mix, unsigned first, unsigned nr)
{
	while (nr--)
		touch_datum(mix, &mix->touches[first++]);
}

/* ---- what the sequential program finds ---- */

static uint64_t follow_touch(const struct mix *mix, const struct touch *touch,
			     uint64_t value)
{
	if (!touch->done)
		return value;
	if (touch->mode == KTRT_REDUCTION)
		return value + touch->mark * touch->done;
	expect_that(mix, touch->done == 1, "a use was done twice");
	if (touch->mode == KTRT_COMMUTATIVE)
		return value + touch->mark;
	if (touch->mode & KTRT_IN)
		expect_that(mix, touch->seen == value,
			    "a value is not the last one");
	return touch->mode & KTRT_OUT
		       ? derive_value(touch->mode & KTRT_IN ? value : 0,
				      touch->mark)
		       : value;
}

/* Those uses that were skipped apart, each found what the one before it left. */
static void follow_touches(const struct mix *mix)
{
	uint64_t values[ALL_DATA] = { 0 };

	for (unsigned i = 0; i < mix->nr_touches; i++) {
		const struct touch *touch = &mix->touches[i];
		uint64_t *value = &values[touch->datum];

		*value = follow_touch(mix, touch, *value);
	}
	for (unsigned i = 0; i < ALL_DATA; i++)
		expect_that(mix, mix->data[i].value == values[i],
			    "the last value is wrong");
}

#endif /* RUNTIME_TEST_MIXES_H */
