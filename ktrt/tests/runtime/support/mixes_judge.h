/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Judges a mix (mixes.h) that is over: which tasks must have run or have been skipped, by
 * what failed or was cancelled, and what waits must have told.  Where chance decides, as
 * among tasks that commute, both is right; all else is exact.
 *
 * Walks through the sequential program and follows the health of data, as the children of
 * each task find them.
 */
#ifndef RUNTIME_TEST_MIXES_JUDGE_H
#define RUNTIME_TEST_MIXES_JUDGE_H

#include "mixes.h"

/* MAYBE: by chance. */
enum health { GOOD, MAYBE, SPOILT };

struct part {
	enum health health;
	unsigned by; /* key of the tasks that spoilt it */
	bool untold; /* no child has named it, so no wait makes it good */
};

/* Of each datum its first byte, which an address names, and the rest. */
struct view {
	struct part parts[DATA][2];
};

enum cancelled { NOT_CANCELLED, MAY_BE_CANCELLED, SURELY_CANCELLED };

static inline enum health worse_of(enum health a, enum health b)
{
	return a > b ? a : b;
}

static inline unsigned key_of(const struct name *name)
{
	return name->mode | name->sum << 8;
}

static inline bool may_be_told(int code)
{
	return !code || code == FAILURE || code == -ECANCELED;
}

/* Does @code tell of a failure just if there was one? */
static void expect_told(const struct mix *mix, int code, bool failed,
			const char *what)
{
	expect_that(mix, may_be_told(code) && !code == !failed, what);
}

/* ---- parts ---- */

#define for_each_part(part, view, name)                                        \
	for (unsigned at_ = 0, is_ = (name)->as_range ? 2 : 1;                 \
	     at_ < (name)->nr * is_; at_++)                                    \
		for (struct part *part = &(view)->parts[(name)->first +        \
							at_ / is_][at_ % is_]; \
		     part; part = NULL)

/* Members of one epoch fail beside each other. */
static enum health health_for(struct view *view, const struct name *name)
{
	enum health worst = GOOD;

	for_each_part(part, view, name)
	{
		bool beside =
			part->by == key_of(name) && !has_alone(name->mode);

		worst = worse_of(worst, part->health == SPOILT && beside
						? MAYBE
						: part->health);
	}
	return worst;
}

static void note_named(struct view *view, const struct name *name)
{
	for_each_part(part, view, name) part->untold = false;
}

static void set_health(struct view *view, const struct name *name,
		       enum health health, unsigned by)
{
	for_each_part(part, view, name)
	{
		if (part->health != SPOILT || health != SPOILT)
			part->by = by;
		part->health = health;
	}
}

/* @surely: a wait for all is over; else some may not have been forgiven. */
static void forgive_all(struct view *view, bool surely)
{
	for (unsigned i = 0; i < DATA * 2; i++) {
		struct part *part = &view->parts[i / 2][i % 2];

		if (part->health != GOOD && !part->untold)
			part->health = surely ? GOOD : MAYBE;
	}
}

/* ---- what is known of a task without its data ---- */

static bool is_inline(const struct step *step)
{
	return step->undeferred || step->inside_final;
}

/* Does the task not wait for what it names so? */
static bool is_weak(const struct step *step, const struct name *name)
{
	if (!name->weak || is_inline(step) || step->final)
		return false;
	for (unsigned i = 0; i < step->nr_names; i++)
		if (step->names[i].mode == KTRT_COMMUTATIVE)
			return false;
	return !step->twice || name != step->names;
}

/* Is it released by parts? */
static bool is_proxied(const struct step *step, const struct name *name)
{
	return !is_inline(step) && name->mode <= KTRT_INOUT &&
	       (name->weak || step->early);
}

static enum cancelled cancelled_when(const struct step *step)
{
	const struct step *above = step;

	if (step->cancelled_before)
		return SURELY_CANCELLED;
	for (; above; above = above->parent)
		if (above->group && get(above->group->cancels))
			return MAY_BE_CANCELLED;
	return NOT_CANCELLED;
}

/* What it and its children make of it, without group's tasks. */
static bool ends_in_failure(const struct step *step)
{
	bool failed = !step->ran || step->code, child = false;

	for (const struct action *action = step->actions; action;
	     action = action->next) {
		if (action->kind == SPAWN && action->executed &&
		    !action->child->group)
			child |= action->child->failed;
		if (action->kind == WAIT && action->executed)
			child = false;
	}
	return failed || child;
}

/* Children come later than their parents. */
static void find_failures(struct mix *mix)
{
	for (unsigned i = mix->nr_steps; i--;)
		mix->steps[i].failed = mix->steps[i].spawned &&
				       ends_in_failure(&mix->steps[i]);
}

static bool group_failed(const struct mix *mix, const struct group *group,
			 unsigned from, unsigned end)
{
	for (; from < end; from++)
		if (mix->steps[from].group == group && mix->steps[from].failed)
			return true;
	return false;
}

/* ---- before a task ---- */

static bool commute_on(const struct step *step, const struct name *name)
{
	for (unsigned i = 0; i < step->nr_names; i++) {
		const struct name *other = &step->names[i];

		if (other->mode == KTRT_COMMUTATIVE &&
		    other->first < name->first + name->nr &&
		    name->first < other->first + other->nr)
			return true;
	}
	return false;
}

/* One of those that commute and come after @action in the program, but may not do so. */
static bool later_one_fails(const struct action *action,
			    const struct name *name)
{
	while ((action = action->next))
		if (action->kind == SPAWN && action->executed &&
		    action->child->failed && commute_on(action->child, name))
			return true;
	return false;
}

static enum health health_of_reads(const struct step *step, struct view *view,
				   const struct action *action)
{
	enum health worst = GOOD;

	for (unsigned i = 0; i < step->nr_names; i++) {
		const struct name *name = &step->names[i];
		enum health health = health_for(view, name);

		if (is_weak(step, name))
			continue;
		if (!(name->mode & KTRT_IN) && !(step->twice && !i))
			continue;
		if (health == GOOD && name->mode == KTRT_COMMUTATIVE &&
		    later_one_fails(action, name))
			health = MAYBE;
		/* Of what it names weakly, too, or would if it could. */
		if (health == SPOILT && (name->weak || (step->twice && !i)))
			health = MAYBE;
		worst = worse_of(worst, health);
	}
	return worst;
}

static void judge_begin(const struct step *step, enum health reads)
{
	enum cancelled cancelled = cancelled_when(step);
	bool surely = reads == SPOILT || cancelled == SURELY_CANCELLED;
	bool free = reads == GOOD && cancelled == NOT_CANCELLED;
	const struct mix *mix = step->mix;

	expect_that(mix, step->ran <= 1, "a task ran twice");
	if (step->always)
		expect_that(mix, step->ran, "a task did not run always");
	else if (surely)
		expect_that(mix, !step->ran,
			    reads == SPOILT ? "a task ran on spoilt data"
					    : "a cancelled task ran");
	else if (free)
		expect_that(mix, step->ran, "a task was skipped for no reason");
	if (step->ran && free)
		expect_that(mix, !step->cancelled,
			    "a task was told of no failure");
	if (step->ran && surely)
		expect_that(mix, step->cancelled, "a task was told nothing");
}

/* What its children find. */
static struct view view_inside(const struct step *step, struct view *outside)
{
	struct view inside = { 0 };

	for (unsigned i = 0; i < step->nr_names; i++) {
		const struct name *name = &step->names[i];
		enum health health = health_for(outside, name);

		if (!name->weak || !(name->mode & KTRT_IN) || health == GOOD)
			continue;
		set_health(&inside, name, is_weak(step, name) ? health : MAYBE,
			   0);
		for_each_part(part, &inside, name) part->untold = true;
	}
	return inside;
}

/* ---- after a task ---- */

static void leave_name(const struct step *step, const struct name *name,
		       struct view *outside, enum health inside, bool released)
{
	enum health health = GOOD;

	if (!(name->mode & KTRT_OUT))
		return;
	if (!is_proxied(step, name))
		health = step->failed ? SPOILT : GOOD;
	else if (!released && (!step->ran || step->code))
		health = SPOILT;
	else
		health = inside;
	if (health != GOOD || has_alone(name->mode))
		set_health(outside, name, health, key_of(name));
}

/* ---- graphs that were made once, loops ---- */

static bool reads_spoilt(const struct member *member, const enum health *cells)
{
	for (unsigned i = 0; i < member->nr; i++)
		if (member->modes[i] & KTRT_IN &&
		    cells[member->data[i]] == SPOILT)
			return true;
	return false;
}

/* In a step without a group that was cancelled. */
static void judge_member(const struct mix *mix, const struct member *member,
			 const struct run *run, enum health *cells,
			 unsigned *failed)
{
	bool spoilt = member->after & *failed || reads_spoilt(member, cells);
	bool runs = !spoilt || member->always, fails;

	expect_that(mix, run->ran[member->at] == runs,
		    runs ? "a node was skipped for no reason"
			 : "a node ran that needs what failed");
	if (runs)
		expect_that(mix, run->cancelled[member->at] == spoilt,
			    "a node is told what is not so");
	fails = !runs || run->fails == member->at;
	*failed |= (unsigned)fails << member->at;
	for (unsigned i = 0; i < member->nr; i++)
		if (member->modes[i] & KTRT_OUT)
			cells[member->data[i]] = fails ? SPOILT : GOOD;
}

static void judge_run(const struct step *step, const struct action *action)
{
	const struct once *once = &step->mix->onces[action->name.first];
	const struct run *run = action->run;
	enum health cells[ALL_DATA] = { GOOD };
	unsigned failed = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		expect_that(step->mix, run->ran[i] <= 1, "a node ran twice");
	if (cancelled_when(step) != NOT_CANCELLED)
		return;
	for (unsigned i = 0; i < MEMBERS; i++)
		judge_member(step->mix, &once->members[i], run, cells, &failed);
	expect_told(step->mix, action->code, failed,
		    "a run tells a wrong code");
}

static void judge_loop(const struct step *step, const struct action *action)
{
	bool fails = action->fails_at < INDICES;
	const struct mix *mix = step->mix;

	for (unsigned i = 0; i < INDICES; i++) {
		expect_that(mix, action->counts[i] <= 1,
			    "an index was done twice");
		expect_that(mix, action->code || action->counts[i],
			    "an index was left out");
	}
	if (action->code == FAILURE)
		expect_that(mix, fails && action->counts[action->fails_at],
			    "a loop failed for no reason");
	else if (cancelled_when(step) == NOT_CANCELLED)
		expect_that(mix, !action->code && !fails,
			    "a loop tells a wrong code");
}

/* ---- bodies ---- */

static void judge_step(const struct step *step, struct view *outside,
		       const struct action *made);

static void judge_wait_for(const struct step *step, struct view *inside,
			   const struct action *action)
{
	enum health health = action->name.mode & KTRT_IN
				     ? health_for(inside, &action->name)
				     : GOOD;

	expect_that(step->mix, !action->code || action->code == -ECANCELED,
		    "a wait for data has a code that it cannot have");
	if (health != MAYBE)
		expect_that(
			step->mix, !action->code == (health == GOOD),
			"a wait for data does not say whether it is spoilt");
	/* As a task that names it so, and fails or not. */
	if (has_alone(action->name.mode))
		set_health(inside, &action->name, action->code ? SPOILT : GOOD,
			   key_of(&action->name));
	note_named(inside, &action->name);
}

static void judge_action(const struct step *step, struct view *inside,
			 const struct action *action, bool *child_failed)
{
	const struct mix *mix = step->mix;
	bool failed;

	switch (action->kind) {
	case SPAWN:
		judge_step(action->child, inside, action);
		if (!action->child->group)
			*child_failed |= action->child->failed;
		break;
	case WAIT:
		expect_told(mix, action->code, *child_failed,
			    "a wait tells a wrong code");
		*child_failed = false;
		forgive_all(inside, true);
		break;
	case WAIT_FOR:
		judge_wait_for(step, inside, action);
		break;
	case GROUP_WAIT:
		failed = group_failed(mix, action->group, action->steps_from,
				      action->steps_end);
		expect_told(mix, action->code, failed,
			    "a wait for a group tells a wrong code");
		if (failed)
			forgive_all(inside, false);
		break;
	case RUN_ONCE:
		judge_run(step, action);
		break;
	case LOOP:
	case REDUCE:
		judge_loop(step, action);
		break;
	default:
		expect_that(mix, !action->code, "a call failed");
	}
}

/* Return: whether a child failed for which it did not wait. */
static bool judge_body(const struct step *step, struct view *inside,
		       enum health *released)
{
	bool child_failed = false;

	for (const struct action *action = step->actions; action;
	     action = action->next) {
		if (!action->executed)
			continue;
		judge_action(step, inside, action, &child_failed);
		if (action->kind == RELEASE)
			released[action->name_at] =
				health_for(inside, &action->name);
	}
	return child_failed;
}

static bool was_released(const struct step *step, unsigned at)
{
	for (const struct action *action = step->actions; action;
	     action = action->next)
		if (action->kind == RELEASE && action->executed &&
		    action->name_at == at)
			return true;
	return false;
}

static void judge_step(const struct step *step, struct view *outside,
		       const struct action *made)
{
	struct view inside = view_inside(step, outside);
	enum health released[DEPS] = { GOOD };

	judge_begin(step, health_of_reads(step, outside, made));
	if (step->ran)
		judge_body(step, &inside, released);
	for (unsigned i = 0; i < step->nr_names; i++) {
		const struct name *name = &step->names[i];
		bool early = was_released(step, i);

		leave_name(step, name, outside,
			   early ? released[i] : health_for(&inside, name),
			   early);
		note_named(outside, name);
	}
}

/* @code: of the wait for all, which is the last. */
static void judge_mix(struct mix *mix, int code, const int *group_codes)
{
	enum health released[DEPS] = { GOOD };
	struct view view = { 0 };

	find_failures(mix);
	expect_told(mix, code, judge_body(&mix->steps[0], &view, released),
		    "the last wait tells a wrong code");
	for (unsigned i = 0; i < 2; i++)
		expect_told(
			mix, group_codes[i],
			group_failed(mix, &mix->groups[i], 0, mix->nr_steps),
			"a group of all tells a wrong code");
	follow_touches(mix);
}

#endif /* RUNTIME_TEST_MIXES_JUDGE_H */
