/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Nested random mixes by the C++ face, against a sequential model: callables that reach
 * their tasks in each way, by settings, in groups, with futures, in scopes and loops, that
 * read, write, commute and add; others in which tasks throw, where just those run that the
 * model lets run and each wait throws if it must; and others whose groups are cancelled at
 * any moment.  Each callable is destroyed, and no exception is left.
 */
#include <vector>

#include "support/callable_mixes.hpp"

#include <sched.h>

namespace
{

/* ---- making tasks ---- */

struct pending {
	ktrt::future<uint64_t> future;
	step *at;
};

ktrt::dep dep_of(const access &access)
{
	uint64_t &value = access.at->value;

	switch (access.mode) {
	case KTRT_IN:
		return ktrt::in(value);
	case KTRT_OUT:
		return ktrt::out(value);
	case KTRT_INOUT:
		return ktrt::inout(value);
	case KTRT_COMMUTATIVE:
		return ktrt::commutative(value);
	default:
		return access.at->sum.dep();
	}
}

template <typename F> void spawn_by_deps(F &&f, const step &step)
{
	const access *all = step.accesses;

	switch (step.nr) {
	case 0:
		return ktrt::spawn(std::forward<F>(f));
	case 1:
		return ktrt::spawn(std::forward<F>(f), dep_of(all[0]));
	case 2:
		return ktrt::spawn(std::forward<F>(f), dep_of(all[0]),
				   dep_of(all[1]));
	default:
		return ktrt::spawn(std::forward<F>(f), dep_of(all[0]),
				   dep_of(all[1]), dep_of(all[2]));
	}
}

/* Return: whether the task is of the group. */
template <typename F>
bool spawn_by_settings(level &level, ktrt::group &group, F &&f,
		       const step &step, const std::vector<ktrt::dep> &deps)
{
	ktrt::settings with;

	with.always = step.always;
	with.undeferred = !level.below(4);
	with.final = !level.below(8);
	with.priority = static_cast<int>(level.below(3)) - 1;
	with.node = static_cast<int>(level.below(2)) - 1;
	with.group = level.below(2) ? group.raw() : nullptr;
	ktrt::spawn(with, std::forward<F>(f), deps);
	return with.group;
}

template <typename F>
void spawn_step(level &level, ktrt::group &group, std::vector<pending> &futures,
		step &step, F &&f)
{
	std::vector<ktrt::dep> deps;
	unsigned way = step.always ? 4 : level.below(5);
	bool in_group = way == 2;

	for (unsigned i = 0; i < step.nr; i++)
		deps.push_back(dep_of(step.accesses[i]));
	/* Only in a group that the maker has cancelled. */
	step.too_late = level.cancelled && in_group;
	switch (way) {
	case 0:
		spawn_by_deps(std::forward<F>(f), step);
		break;
	case 1:
		ktrt::spawn(std::forward<F>(f), deps);
		break;
	case 2:
		group.run(std::forward<F>(f), deps);
		break;
	case 3:
		futures.push_back(
			{ ktrt::async(
				  with_value<typename std::decay<F>::type>{
					  std::forward<F>(f), &step },
				  deps),
			  &step });
		return;
	default:
		in_group = spawn_by_settings(level, group, std::forward<F>(f),
					     step, deps);
	}
	(in_group ? level.group_failed : level.failed) |= step.failed();
}

void spawn_somehow(level &level, ktrt::group &group,
		   std::vector<pending> &futures, step &step)
{
	switch (level.below(5)) {
	case 0:
		return spawn_step(level, group, futures, step,
				  body<nothing>{ &step });
	case 1:
		return spawn_step(level, group, futures, step,
				  body<bytes>{ &step, bytes() });
	case 2:
		return spawn_step(level, group, futures, step,
				  body<owner>{ &step, owner() });
	case 3:
		return spawn_step(level, group, futures, step,
				  body<copied>{ &step, copied() });
	default:
		return spawn_step(
			level, group, futures, step,
			std::function<void()>(body<bytes>{ &step, bytes() }));
	}
}

/* ---- waits ---- */

void expect_thrown(const level &level, bool thrown, bool failed,
		   const char *what)
{
	expect_that(thrown == failed || level.how == CANCELLED, what);
}

/* Then all that was spoilt is good. */
void wait_for_all(level &level)
{
	expect_thrown(level, throws(ktrt::wait), level.failed,
		      "a wait threw, or did not");
	level.failed = false;
	for (datum &datum : level.data) {
		datum.spoilt = false;
		expect_that(!datum.users, "a wait was over too early");
		expect_that(datum.value == datum.model ||
				    level.how == CANCELLED,
			    "a datum has a wrong value");
	}
}

void wait_for_group(level &level, ktrt::group &group)
{
	bool failed = level.group_failed;

	expect_thrown(level, throws([&] { group.wait(); }), failed,
		      "a wait for a group threw, or did not");
	level.group_failed = false;
	/* What is good again, and what is not yet spoilt, would be left to chance. */
	if (failed)
		wait_for_all(level);
}

/* One that nobody asks is told of by the wait for all. */
void end_future(level &level, std::vector<pending> &futures)
{
	pending last = std::move(futures.back());
	bool failed = last.at->failed(), asks = level.below(2);

	futures.pop_back();
	if (asks)
		expect_thrown(level, throws([&] {
				      expect_that(last.future.get() ==
							  last.at->mark,
						  "another value");
			      }),
			      failed, "a future threw, or did not");
	else
		last.future = ktrt::future<uint64_t>();
	level.failed |= failed && !asks;
	if (failed)
		wait_for_all(level);
}

void wait_sometimes(level &level, ktrt::group &group,
		    std::vector<pending> &futures)
{
	switch (level.below(40)) {
	case 0:
		return wait_for_all(level);
	case 1:
		return wait_for_group(level, group);
	case 2:
	case 3:
		if (!futures.empty())
			end_future(level, futures);
		return;
	case 4:
		if (level.how == CANCELLED)
			group.run([&] { group.cancel(); });
		return;
	case 5:
		if (level.how == CANCELLED) {
			group.cancel();
			level.cancelled = true;
		}
	}
}

/* The futures and the group end with the block, and throw there. */
void run_phase(level &level, unsigned nr)
{
	std::vector<pending> futures;
	ktrt::group group;

	level.cancelled = false;
	while (nr--) {
		step &step = make_step(level);

		follow_step(step);
		spawn_somehow(level, group, futures, step);
		wait_sometimes(level, group, futures);
	}
	while (!futures.empty())
		end_future(level, futures);
	if (level.below(2))
		wait_for_group(level, group);
}

void check_steps(const level &level)
{
	for (const step &step : level.steps)
		expect_that(step.ran == step.runs() || level.how == CANCELLED,
			    "a task ran, or did not");
}

void run_level(uint64_t seed, unsigned depth, flavour how)
{
	level level(seed, depth, how);
	ktrt::scope waits;
	unsigned nr = depth ? 8 : sanitized ? 20 : 70;

	for (unsigned i = 0; i < phases; i++) {
		bool thrown = throws([&] { run_phase(level, nr); });

		expect_thrown(level, thrown, level.group_failed,
			      "the end of a group threw, or did not");
		level.group_failed = false;
		wait_for_all(level);
	}
	check_steps(level);
}

/* ---- all of them ---- */

uint64_t seed;

/* Some at a time, so that workers have strangers' tasks besides. */
void run_mixes()
{
	unsigned nr = sanitized ? 3 : 9;

	for (unsigned i = 0; i < nr; i++) {
		uint64_t beside = ktest_random(&seed);

		ktrt::spawn([=] {
			run_level(beside, 1, static_cast<flavour>(i % 3));
		});
		run_level(ktest_random(&seed), 0, static_cast<flavour>(i % 3));
	}
	ktrt::wait();
}

extern "C" void run_and_count()
{
	run_mixes();
	assert_int_equal(wrong, 0);
	assert_int_equal(alive, 0);
}

extern "C" void mixes_run_in_order(void **)
{
	seed = ktest_seed();
	in_each_way(run_and_count);
}

/* All threads, also the one that makes and waits. */
extern "C" void mixes_run_on_one_cpu(void **)
{
	cpu_set_t before, one;
	int cpu = 0;

	seed = ktest_seed();
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	in_each_way(run_and_count);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

} /* namespace */

KTEST_MAIN(KTEST(mixes_run_in_order), KTEST(mixes_run_on_one_cpu))
