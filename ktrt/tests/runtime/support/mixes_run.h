/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Runs mixes (mixes.h) as tasks: makes tasks of steps and does their actions, then has it
 * judged.
 */
#ifndef RUNTIME_TEST_MIXES_RUN_H
#define RUNTIME_TEST_MIXES_RUN_H

#include "mixes_judge.h"
#include "mixes_loops.h"
#include "mixes_make.h"

static unsigned long nr_done; /* mixes and tasks */

/* ---- making tasks ---- */

static struct ktrt_dep dep_of(struct mix *mix, const struct name *name)
{
	struct datum *datum = &mix->data[name->first];
	struct ktrt_dep dep = { datum, 0, name->mode };

	if (name->mode == KTRT_REDUCTION)
		dep.addr = &datum->sums[name->sum];
	if (name->as_range)
		dep.len = name->nr * sizeof(*datum);
	if (name->weak)
		dep.mode |= KTRT_WEAK;
	return dep;
}

static bool is_cancelled(const struct step *step)
{
	for (; step; step = step->parent)
		if (step->group && get(step->group->cancelled))
			return true;
	return false;
}

static int do_step(void *arg);

static int spawn_with(struct step *step, const struct ktrt_dep *deps, size_t nr)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = nr;
	attr.arg_bytes = sizeof(step);
	attr.priority = step->priority;
	attr.node = step->node;
	attr.group = step->group ? step->group->made : NULL;
	attr.flags = (step->undeferred ? KTRT_UNDEFERRED : 0) |
		     (step->final ? KTRT_FINAL : 0) |
		     (step->always ? KTRT_ALWAYS : 0) |
		     (step->early ? KTRT_EARLY_RELEASE : 0);
	return ktrt_spawn_attr(do_step, &step, &attr);
}

static bool is_plain(const struct step *step)
{
	return !step->nr_names && !step->undeferred && !step->final &&
	       !step->always && !step->priority && step->node < 0 &&
	       !step->group;
}

static int spawn_step(struct step *step)
{
	struct ktrt_dep deps[DEPS + 2];
	struct ktrt_dep *own = deps + 1, *first = own;
	unsigned nr = step->nr_names;

	if (is_plain(step))
		return ktrt_spawn_copy(do_step, &step, sizeof(step));
	for (unsigned i = 0; i < nr; i++)
		own[i] = dep_of(step->mix, &step->names[i]);
	if (step->twice) {
		struct ktrt_dep *again = step->weak_first ? deps : &own[nr];

		*again = own[0];
		again->mode = KTRT_WEAK_IN;
		first = step->weak_first ? deps : own;
		nr++;
	}
	return spawn_with(step, first, nr);
}

static int make_task(struct step *step)
{
	int error;

	step->cancelled_before = is_cancelled(step);
	step->spawned = true;
	error = spawn_step(step);
	if (error)
		step->spawned = false;
	else if (is_inline(step) && !peek(step->ran))
		poke(step->too_late, 1);
	return error;
}

/* ---- waits that are over ---- */

/* It and all below it are complete, or never run. */
static void expect_over(struct step *step)
{
	if (!peek(step->ran)) {
		poke(step->too_late, 1);
		return;
	}
	expect_that(step->mix, peek(step->done), "a wait was over too early");
	for (struct action *action = step->actions; action;
	     action = action->next)
		if (action->kind == SPAWN && action->executed)
			expect_over(action->child);
}

static int wait_for_all(struct step *step, const struct action *until)
{
	int code = ktrt_wait();

	for (struct action *action = step->actions; action != until;
	     action = action->next)
		if (action->kind == SPAWN && action->executed)
			expect_over(action->child);
	return code;
}

static int wait_for_own(struct step *step, const struct action *action)
{
	int code = ktrt_group_wait(action->group->made);

	for (unsigned i = action->steps_from; i < action->steps_end; i++) {
		struct step *other = &step->mix->steps[i];

		if (other->group == action->group && other->spawned)
			expect_over(other);
	}
	return code;
}

/* ---- graphs that are made once ---- */

static int use_data(void *arg)
{
	const struct member *member = *(struct member **)arg;
	struct mix *mix = member->once->mix;

	touch_all(mix, member->once->current->first[member->at], member->nr);
	return 0;
}

static int do_nothing(size_t first, size_t end, void *arg)
{
	return 0;
}

static int use_somehow(struct member *member)
{
	int error = 0;

	switch (member->way) {
	case 0:
	case 1:
		error = ktrt_spawn_copy(use_data, &member, sizeof(member));
		return error || !member->way ? error : ktrt_wait();
	case 2:
		error = ktrt_for(0, 4, 1, do_nothing, NULL);
		break;
	case 3:
		error = ktrt_yield();
		break;
	}
	use_data(&member);
	return error;
}

static int do_member(void *arg)
{
	struct member *member = arg;
	struct run *run = member->once->current;
	int code;

	bump(run->ran[member->at]);
	run->cancelled[member->at] = ktrt_cancelled();
	code = use_somehow(member);
	return run->fails == member->at ? FAILURE : code;
}

static int add_member(struct once *once, struct member *member)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep deps[DEPS];
	int error;

	for (unsigned i = 0; i < member->nr; i++)
		deps[i] = (struct ktrt_dep){ &once->mix->data[member->data[i]],
					     0, member->modes[i] };
	attr.deps = deps;
	attr.nr_deps = member->nr;
	attr.flags = member->always ? KTRT_ALWAYS : 0;
	attr.priority = member->way == 5;
	attr.node = (int)member->way - 6;
	if (attr.node < 0)
		attr.node = -1;
	error = ktrt_graph_add(once->made, do_member, member, &attr);
	if (error != (int)member->at)
		return -EIO;
	for (unsigned i = 0; i < member->at; i++)
		if (member->after & 1u << i &&
		    ktrt_graph_edge(once->made, (int)i, (int)member->at))
			return -EIO;
	return 0;
}

static int make_once(struct once *once)
{
	int error = ktrt_graph_new(&once->made);

	for (unsigned i = 0; i < MEMBERS && !error; i++)
		error = add_member(once, &once->members[i]);
	return error;
}

static int run_nodes(struct mix *mix, struct action *action)
{
	struct once *once = &mix->onces[action->name.first];

	once->current = action->run;
	return ktrt_graph_run(once->made);
}

/* ---- bodies ---- */

static int do_event(void *arg)
{
	ktrt_events_done(*(struct ktrt_task **)arg, 1);
	return 0;
}

/* Its task must run, or the event is never done. */
static int add_event(void)
{
	struct ktrt_task *self = ktrt_self();
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int error = ktrt_events_add(1);

	attr.arg_bytes = sizeof(self);
	attr.flags = KTRT_ALWAYS;
	return error ? error : ktrt_spawn_attr(do_event, &self, &attr);
}

static int cancel_group(struct group *group)
{
	more(group->cancels);
	ktrt_group_cancel(group->made);
	more(group->cancelled);
	return 0;
}

static int wait_for_data(struct step *step, const struct action *action)
{
	struct ktrt_dep dep = dep_of(step->mix, &action->name);
	int code = ktrt_wait_for(&dep, 1);

	touch_all(step->mix, action->first, action->nr);
	return code;
}

static int yield_often(unsigned nr)
{
	int error = 0;

	while (nr-- && !error)
		error = ktrt_yield();
	return error;
}

static int do_action(struct step *step, struct action *action)
{
	struct loop loop = { step, action };
	struct ktrt_dep dep;

	switch (action->kind) {
	case USE:
		touch_all(step->mix, action->first, action->nr);
		return 0;
	case SPAWN:
		return make_task(action->child);
	case WAIT:
		return wait_for_all(step, action);
	case WAIT_FOR:
		return wait_for_data(step, action);
	case GROUP_WAIT:
		return wait_for_own(step, action);
	case CANCEL:
		return cancel_group(action->group);
	case RELEASE:
		dep = dep_of(step->mix, &action->name);
		return ktrt_release(&dep, 1);
	case EVENT:
		return add_event();
	case YIELD:
		return yield_often(action->yields);
	case LOOP:
		return ktrt_for(0, INDICES, action->grain, do_indices, &loop);
	case REDUCE:
		return reduce_all(step, action);
	case RUN_ONCE:
		return run_nodes(step->mix, action);
	}
	return 0;
}

/* Return: what a wait for all told last. */
static int act_all(struct step *step)
{
	int told = 0;

	for (struct action *action = step->actions; action;
	     action = action->next) {
		action->executed = true;
		action->code = do_action(step, action);
		if (action->kind == WAIT)
			told = action->code;
	}
	return told;
}

static int do_step(void *arg)
{
	struct step *step = *(struct step **)arg;
	struct mix *mix = step->mix;
	int told;

	bump(step->ran);
	expect_that(mix, !peek(step->too_late),
		    "a task ran after a wait for it");
	step->cancelled = ktrt_cancelled();
	if (step->own)
		expect_that(mix, !ktrt_group_new(&step->own->made), "no group");
	told = act_all(step);
	if (step->own)
		ktrt_group_free(step->own->made);
	step->code = step->fails ? FAILURE : step->passes_on ? told : 0;
	poke(step->done, 1);
	more(nr_done);
	return step->code;
}

/* ---- mixes ---- */

static int begin_mix(struct mix *mix)
{
	int error = ktrt_group_new(&mix->groups[0].made);

	if (!error)
		error = ktrt_group_new(&mix->groups[1].made);
	for (unsigned i = 0; i < ONCES && !error; i++)
		error = make_once(&mix->onces[i]);
	return error;
}

static void end_mix(struct mix *mix)
{
	for (unsigned i = 0; i < ONCES; i++)
		ktrt_graph_free(mix->onces[i].made);
	ktrt_group_free(mix->groups[1].made);
	ktrt_group_free(mix->groups[0].made);
	free(mix);
}

/* What is told of the tasks is judged, so it is not the caller's. */
static void do_mix(struct mix *mix)
{
	int groups[2], code;

	mix->steps[0].ran = 1;
	act_all(&mix->steps[0]);
	code = wait_for_all(&mix->steps[0], NULL);
	for (unsigned i = 0; i < 2; i++)
		groups[i] = ktrt_group_wait(mix->groups[i].made);
	judge_mix(mix, code, groups);
}

/* @good: nothing fails or is cancelled. */
static int run_mix(uint64_t seed, bool good)
{
	struct mix *mix = make_mix(seed, good);
	int error;

	if (!mix)
		return -ENOMEM;
	error = begin_mix(mix);
	if (!error)
		do_mix(mix);
	end_mix(mix);
	more(nr_done);
	return error;
}

static int __attribute__((unused)) mix_beside(void *arg)
{
	return run_mix((uint64_t)(uintptr_t)arg, false);
}

static int __attribute__((unused)) good_mix_beside(void *arg)
{
	return run_mix((uint64_t)(uintptr_t)arg, true);
}

#endif /* RUNTIME_TEST_MIXES_RUN_H */
