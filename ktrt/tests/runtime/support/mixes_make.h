/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes up the sequential program of a mix (mixes.h).  Children name parts of what their
 * parent names.  A body uses data itself before it has made children that name them, and
 * after it has waited for these.
 */
#ifndef RUNTIME_TEST_MIXES_MAKE_H
#define RUNTIME_TEST_MIXES_MAKE_H

#include "mixes.h"

static inline unsigned random_below(struct mix *mix, unsigned nr)
{
	return (unsigned)ktest_random_below(&mix->random, nr);
}

/* One of @nr. */
static inline bool one_in(struct mix *mix, unsigned nr)
{
	return !random_below(mix, nr);
}

/* ---- actions and touches ---- */

static struct action *add_action(struct step *step, enum kind kind)
{
	struct mix *mix = step->mix;
	struct action *action;

	if (mix->nr_actions == ACTIONS)
		return NULL;
	action = &mix->actions[mix->nr_actions++];
	action->kind = kind;
	action->first = mix->nr_touches;
	*step->end = action;
	step->end = &action->next;
	return action;
}

static bool add_touch(struct mix *mix, unsigned datum, unsigned mode,
		      unsigned sum)
{
	unsigned key = mode | sum << 8;

	if (mix->nr_touches == TOUCHES)
		return false;
	if (has_alone(mode) || mix->keys[datum] != key)
		mix->epochs[datum]++;
	mix->keys[datum] = key;
	mix->touches[mix->nr_touches++] =
		(struct touch){ .datum = datum,
				.mode = mode,
				.sum = sum,
				.epoch = mix->epochs[datum],
				.mark = ktest_random(&mix->random) };
	return true;
}

static void touch_name(struct mix *mix, struct action *action,
		       const struct name *name)
{
	for (unsigned i = 0; i < name->nr; i++)
		action->nr +=
			add_touch(mix, name->first + i, name->mode, name->sum);
}

/* A reduction that the task, or one above it, adds to. */
static const struct name *find_sum(const struct step *step)
{
	for (; step; step = step->parent)
		for (unsigned i = 0; i < step->nr_names; i++)
			if (step->names[i].mode == KTRT_REDUCTION)
				return &step->names[i];
	return NULL;
}

static void add_above(struct step *step, struct action *action)
{
	const struct name *sum = find_sum(step->parent);

	if (sum && one_in(step->mix, 2))
		touch_name(step->mix, action, sum);
}

/* @again: the children that were made are complete. */
static void use_own(struct step *step, bool again)
{
	struct action *action = add_action(step, USE);

	if (!action)
		return;
	for (unsigned i = 0; i < step->nr_names; i++) {
		const struct name *name = &step->names[i];

		if (!name->weak && !name->gone &&
		    (!again || name->mode <= KTRT_INOUT))
			touch_name(step->mix, action, name);
	}
	if (!again)
		add_above(step, action);
}

/* ---- graphs that are made once, and loops ---- */

static const struct name *names_alone(const struct step *step, unsigned datum)
{
	for (unsigned i = 0; i < step->nr_names; i++) {
		const struct name *name = &step->names[i];

		if (!name->weak && !name->gone && has_alone(name->mode) &&
		    datum - name->first < name->nr)
			return name;
	}
	return NULL;
}

static void touch_run(struct mix *mix, const struct once *once, struct run *run)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		const struct member *member = &once->members[i];

		run->first[i] = mix->nr_touches;
		for (unsigned j = 0; j < member->nr; j++)
			add_touch(mix, member->data[j], member->modes[j], 0);
	}
}

/* While no child uses the graph's datum, which is the task's alone. */
static void run_once(struct step *step)
{
	struct mix *mix = step->mix;
	unsigned at = random_below(mix, ONCES);
	struct action *action;

	if (mix->nr_runs == RUNS || !names_alone(step, at) ||
	    mix->nr_touches + MEMBERS * DEPS > TOUCHES)
		return;
	action = add_action(step, RUN_ONCE);
	if (!action)
		return;
	action->run = &mix->runs[mix->nr_runs++];
	action->name.first = at;
	action->run->fails = mix->with_failures && one_in(mix, 3)
				     ? random_below(mix, MEMBERS)
				     : MEMBERS;
	touch_run(mix, &mix->onces[at], action->run);
}

static void make_member(struct once *once, unsigned at)
{
	static const unsigned modes[] = { KTRT_IN, KTRT_IN, KTRT_OUT,
					  KTRT_INOUT, KTRT_COMMUTATIVE };
	struct mix *mix = once->mix;
	struct member *member = &once->members[at];
	unsigned number = (unsigned)(once - mix->onces);

	member->once = once;
	member->at = at;
	for (unsigned i = 0; i <= CELLS; i++) {
		if (one_in(mix, 2))
			continue;
		member->data[member->nr] =
			i < CELLS ? DATA + number * CELLS + i : number;
		member->modes[member->nr++] =
			modes[random_below(mix, KTEST_ARRAY_SIZE(modes))];
	}
	if (at && one_in(mix, 4))
		member->after = 1u << random_below(mix, at);
	member->always = one_in(mix, 8);
	member->way = random_below(mix, 8);
}

static void make_loop(struct step *step, enum kind kind)
{
	struct mix *mix = step->mix;
	const struct name *sum = find_sum(step);
	struct action *action = add_action(step, kind);

	if (!action)
		return;
	action->grain = random_below(mix, 4);
	action->fails_at = mix->with_failures && one_in(mix, 4)
				   ? random_below(mix, INDICES)
				   : INDICES;
	if (kind == LOOP && sum)
		action->nr = add_touch(mix, sum->first, sum->mode, sum->sum);
}

/* ---- names ---- */

static unsigned mode_below(struct mix *mix, unsigned mode)
{
	static const unsigned modes[] = { KTRT_IN,    KTRT_OUT,
					  KTRT_INOUT, KTRT_COMMUTATIVE,
					  KTRT_INOUT, KTRT_REDUCTION };

	return has_alone(mode)
		       ? modes[random_below(mix, KTEST_ARRAY_SIZE(modes))]
		       : mode;
}

static bool named_already(const struct step *step, const struct name *name)
{
	for (unsigned i = 0; i < step->nr_names; i++)
		if (step->names[i].first < name->first + name->nr &&
		    name->first < step->names[i].first + step->names[i].nr)
			return true;
	return false;
}

/* A part of what the parent names. */
static void name_data(struct step *step, const struct step *parent)
{
	struct mix *mix = step->mix;
	const struct name *from =
		&parent->names[random_below(mix, parent->nr_names)];
	struct name *name = &step->names[step->nr_names];

	if (from->gone || from->mode == KTRT_REDUCTION)
		return;
	*name = (struct name){ .mode = mode_below(mix, from->mode), .nr = 1 };
	name->first = from->first + random_below(mix, from->nr);
	if (name->mode == KTRT_REDUCTION)
		name->sum = random_below(mix, SUMS);
	else
		name->as_range = mix->with_ranges && random_below(mix, 4);
	if (name->as_range)
		name->nr +=
			random_below(mix, from->first + from->nr - name->first);
	name->weak = name->mode <= KTRT_INOUT && random_below(mix, 2);
	if (!named_already(step, name))
		step->nr_names++;
}

static void make_release(struct step *step)
{
	unsigned at = random_below(step->mix, step->nr_names);
	struct name *name = &step->names[at];
	struct action *action;

	if (name->gone || name->mode > KTRT_INOUT ||
	    !(name->weak || step->early))
		return;
	action = add_action(step, RELEASE);
	if (!action)
		return;
	action->name = *name;
	action->name_at = at;
	name->gone = true;
}

static void make_wait_for(struct step *step)
{
	struct mix *mix = step->mix;
	struct name name = step->names[random_below(mix, step->nr_names)];
	struct action *action;

	if (name.gone || name.mode > KTRT_INOUT)
		return;
	action = add_action(step, WAIT_FOR);
	if (!action)
		return;
	if (one_in(mix, 3))
		name.mode = KTRT_IN;
	name.weak = false;
	action->name = name;
	touch_name(mix, action, &name);
}

/* ---- tasks ---- */

static struct step *make_step(struct mix *mix, struct step *parent,
			      unsigned level);

static void make_child(struct step *step, unsigned level)
{
	struct action *action = add_action(step, SPAWN);
	struct step *child =
		action ? make_step(step->mix, step, level + 1) : NULL;

	if (child)
		action->child = child;
	else if (action)
		action->kind = USE;
}

static void make_group_wait(struct step *step, unsigned *told)
{
	struct action *action = add_action(step, GROUP_WAIT);

	if (!action)
		return;
	action->group = step->own;
	action->steps_from = *told;
	*told = action->steps_end = step->mix->nr_steps;
}

static void make_cancel(struct step *step)
{
	struct group *all = &step->mix->groups[1];
	struct group *choice[] = { all, step->own, step->group, step->own };
	struct group *group = choice[random_below(step->mix, 4)];
	struct action *action;

	if (!group || group == step->mix->groups)
		return;
	action = add_action(step, CANCEL);
	if (action)
		action->group = group;
}

/* Some in a row, for which more is tried. */
static void make_yields(struct step *step)
{
	struct action *action =
		one_in(step->mix, 6) ? add_action(step, YIELD) : NULL;

	if (action)
		action->yields = one_in(step->mix, 4) ? 20 : 1;
}

/* Between two children. */
static void make_between(struct step *step, unsigned level, unsigned *told)
{
	struct mix *mix = step->mix;

	if (step->nr_names && one_in(mix, 8))
		make_wait_for(step);
	if (step->nr_names && level && one_in(mix, 6))
		make_release(step);
	if (mix->with_cancels && one_in(mix, 16))
		make_cancel(step);
	if (step->own && one_in(mix, 6))
		make_group_wait(step, told);
	if (one_in(mix, 16))
		make_loop(step, one_in(mix, 2) ? LOOP : REDUCE);
	make_yields(step);
}

static void make_body(struct step *step, unsigned level)
{
	struct mix *mix = step->mix;
	unsigned children =
		level < LEVELS ? random_below(mix, CHILDREN + 1) : 0;
	unsigned told = mix->nr_steps;

	if (level && one_in(mix, 10))
		add_action(step, EVENT);
	if (level) {
		make_yields(step);
		use_own(step, false);
		if (one_in(mix, 3))
			run_once(step);
	}
	while (children--) {
		make_child(step, level);
		make_between(step, level, &told);
	}
	if (one_in(mix, 5) && add_action(step, WAIT) && level) {
		use_own(step, true);
		if (one_in(mix, 3))
			run_once(step);
	}
	if (step->own)
		make_group_wait(step, &told);
}

static struct step *new_step(struct mix *mix)
{
	struct step *step;

	if (mix->nr_steps == STEPS)
		return NULL;
	step = &mix->steps[mix->nr_steps++];
	step->mix = mix;
	step->end = &step->actions;
	step->node = -1;
	return step;
}

static struct group *some_group(struct mix *mix, const struct step *parent)
{
	switch (random_below(mix, 8)) {
	case 0:
		return &mix->groups[random_below(mix, 2)];
	case 1:
		return parent->group;
	case 2:
	case 3:
		return parent->own;
	default:
		return NULL;
	}
}

static void make_attr(struct step *step)
{
	struct mix *mix = step->mix;

	step->undeferred = one_in(mix, 12);
	step->final = one_in(mix, 12);
	step->early = random_below(mix, 2);
	step->twice = one_in(mix, 4) && step->nr_names &&
		      step->names[0].mode != KTRT_REDUCTION;
	step->weak_first = random_below(mix, 2);
	step->always = one_in(mix, 8);
	step->fails = mix->with_failures && one_in(mix, 10);
	step->passes_on = random_below(mix, 2);
	if (one_in(mix, 6))
		step->priority = (int)random_below(mix, 9) - 4;
	if (one_in(mix, 6))
		step->node = (int)random_below(mix, 8) - 1;
	else if (one_in(mix, 6))
		step->node = 0;
}

static struct step *make_step(struct mix *mix, struct step *parent,
			      unsigned level)
{
	unsigned nr = random_below(mix, DEPS + 1);
	struct step *step = new_step(mix);

	if (!step)
		return NULL;
	step->parent = parent;
	while (nr-- && parent->nr_names)
		name_data(step, parent);
	make_attr(step);
	step->inside_final = parent->final || parent->inside_final;
	step->group = some_group(mix, parent);
	if (one_in(mix, 4))
		step->own = &mix->groups[mix->nr_groups++];
	make_body(step, level);
	return step;
}

/* All data are its own. */
static void make_root(struct mix *mix)
{
	struct step *root = new_step(mix);
	unsigned each = mix->with_ranges ? DATA / 2 : 1;

	for (unsigned i = 0; i < DEPS && i * each < DATA; i++)
		root->names[root->nr_names++] =
			(struct name){ .first = i * each,
				       .nr = each,
				       .mode = KTRT_INOUT,
				       .as_range = mix->with_ranges };
	for (int i = 0; i < 5; i++)
		make_body(root, 0);
}

static void add_copy(void *data, void *copy, void *arg)
{
	struct mix *mix = arg;
	struct datum *datum = data;

	expect_that(mix, !peek(datum->users),
		    "a copy is added while others use it");
	datum->value += *(uint64_t *)copy;
}

static struct ktrt_reduction sum_of(struct mix *mix, struct datum *datum)
{
	struct ktrt_reduction sum = KTRT_REDUCTION_INIT;

	sum.data = datum;
	sum.bytes = sizeof(uint64_t);
	sum.combine = add_copy;
	sum.arg = mix;
	return sum;
}

/* @good: nothing fails or is cancelled. */
static struct mix *make_mix(uint64_t seed, bool good)
{
	struct mix *mix = calloc(1, sizeof(*mix));

	if (!mix)
		return NULL;
	mix->seed = mix->random = seed;
	mix->with_ranges = random_below(mix, 2);
	mix->with_failures = random_below(mix, 2) && !good;
	mix->with_cancels = one_in(mix, 3) && !good;
	mix->nr_groups = 2;
	for (unsigned i = 0; i < ALL_DATA * SUMS; i++)
		mix->data[i / SUMS].sums[i % SUMS] =
			sum_of(mix, &mix->data[i / SUMS]);
	for (unsigned i = 0; i < ONCES * MEMBERS; i++) {
		mix->onces[i / MEMBERS].mix = mix;
		make_member(&mix->onces[i / MEMBERS], i % MEMBERS);
	}
	make_root(mix);
	return mix;
}

#endif /* RUNTIME_TEST_MIXES_MAKE_H */
