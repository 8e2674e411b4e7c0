/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What random mixes of callables are made of, what a task of them does, and the sequential
 * model.  Does not own making tasks and waiting for them (the test).
 */
#ifndef RUNTIME_TEST_CALLABLE_MIXES_HPP
#define RUNTIME_TEST_CALLABLE_MIXES_HPP

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include <ktask/runtime.hpp>

extern "C" {
#include "runs.h"
}

/* Members have this name. */
#undef get

namespace
{

const unsigned nr_data = 6, deps_most = 3, levels = 2, phases = 3;
const bool sanitized = KTEST_TSAN || KTEST_ASAN;

enum flavour { GOOD, FAILING, CANCELLED };

std::atomic<unsigned> wrong;
std::atomic<int> alive;

void expect_that(bool holds, const char *what)
{
	if (!holds && !wrong++)
		std::fprintf(stderr, "# %s\n", what);
}

struct counted {
	counted()
	{
		alive++;
	}
	counted(const counted &)
	{
		alive++;
	}
	counted &operator=(const counted &) = default;
	~counted()
	{
		alive--;
	}
};

struct failure {
	counted one;
};

/* Does it throw what a task threw, or that one was skipped? */
template <typename F> bool throws(F &&f)
{
	try {
		f();
	} catch (const failure &) {
		return true;
	} catch (const ktrt::error &error) {
		expect_that(error.task_code() == -ECANCELED, error.what());
		return true;
	}
	return false;
}

/* ---- data and steps ---- */

struct datum {
	uint64_t value = 0; /* plain: dependences alone must order it */
	std::atomic<int> users{ 0 }; /* each 1, or 1000 of who has it alone */
	uint64_t model = 0;
	bool spoilt = false; /* by the model */
	ktrt::reducer<uint64_t> sum{ value, 0, std::plus<uint64_t>() };
};

struct access {
	datum *at;
	unsigned mode;
	uint64_t expected;
	bool known; /* the value is, and not only how it changes */
};

struct step {
	flavour how;
	unsigned depth, nr = 0, kind;
	access accesses[deps_most];
	uint64_t mark;
	bool fails, always, skipped = false, too_late = false;
	std::atomic<unsigned> ran{ 0 };

	bool runs() const
	{
		return !skipped || always;
	}
	bool failed() const
	{
		return !runs() || fails;
	}
};

uint64_t derive_value(uint64_t old, uint64_t mark)
{
	return (old ^ mark) * 0x9e3779b97f4a7c15u + 1;
}

int weigh_mode(unsigned mode)
{
	return mode == KTRT_IN || mode == KTRT_REDUCTION ? 1 : 1000;
}

void change_datum(const step &step, const access &access)
{
	datum &datum = *access.at;

	if (access.mode == KTRT_REDUCTION) {
		datum.sum.local() += step.mark;
		return;
	}
	if (access.mode & KTRT_IN && access.known)
		expect_that(datum.value == access.expected ||
				    step.how == CANCELLED,
			    "a task found a wrong value");
	if (access.mode == KTRT_COMMUTATIVE)
		datum.value += step.mark;
	else if (access.mode & KTRT_OUT)
		datum.value = derive_value(
			access.mode & KTRT_IN ? datum.value : 0, step.mark);
}

void use_data(const step &step)
{
	for (unsigned i = 0; i < step.nr; i++) {
		const access &access = step.accesses[i];
		int weight = weigh_mode(access.mode);
		int users = access.at->users.fetch_add(weight);

		expect_that(weight > 1 ? !users : users < 1000,
			    "tasks used a datum together");
	}
	for (unsigned i = 0; i < step.nr; i++)
		change_datum(step, step.accesses[i]);
	for (unsigned i = 0; i < step.nr; i++)
		step.accesses[i].at->users -= weigh_mode(step.accesses[i].mode);
}

void run_level(uint64_t seed, unsigned depth, flavour how);

void use_in_loops(const step &step)
{
	std::atomic<int> sum{ 0 };

	ktrt::parallel_for(0, 16, [&](int i) { sum += i; });
	expect_that(sum == 120, "a loop left something out");
	expect_that(ktrt::reduce(
			    0, 16, 0, [](int i) { return i; },
			    [](int a, int b) { return a + b; }) == 120,
		    "a reduction left something out");
	use_data(step);
}

/* By the task itself, or below it. */
void use_somehow(const step &step)
{
	switch (step.kind) {
	case 0: {
		ktrt::scope waits;

		ktrt::spawn([&] { use_data(step); });
		return;
	}
	case 1:
		ktrt::spawn([&] { use_data(step); });
		return;
	case 2:
		ktrt::yield();
		break;
	case 3:
		return use_in_loops(step);
	case 4:
		if (step.depth < levels)
			run_level(step.mark, step.depth + 1, step.how);
		break;
	case 5:
		expect_that(ktrt::async([&] {
				    use_data(step);
				    return step.mark;
			    }).get() == step.mark,
			    "a future has another value");
		return;
	}
	use_data(step);
}

void do_step(step &step)
{
	expect_that(!step.ran++, "a task ran twice");
	expect_that(!step.too_late, "a task of a cancelled group ran");
	if (step.how != CANCELLED)
		expect_that(ktrt_cancelled() == (step.always && step.skipped),
			    "a task has wrong news of its data");
	use_somehow(step);
	if (step.fails)
		throw failure();
}

/* ---- callables ---- */

struct nothing {
};

struct bytes {
	char some[40];
};

struct owner {
	counted one;
	std::unique_ptr<int> value{ new int(1) };
};

/* Has no move that cannot throw. */
struct copied {
	counted one;
	copied() = default;
	copied(const copied &) noexcept(false) = default;
};

template <typename Load> struct body {
	step *at;
	Load load;

	void operator()() const
	{
		do_step(*at);
	}
};

template <> struct body<nothing> {
	step *at;

	void operator()() const
	{
		do_step(*at);
	}
};

template <typename F> struct with_value {
	F f;
	step *at;

	uint64_t operator()()
	{
		f();
		return at->mark;
	}
};

/* ---- the model ---- */

struct level {
	const flavour how;
	const unsigned depth;
	uint64_t random;
	std::array<datum, nr_data> data;
	std::deque<step> steps;
	/* Since the last wait: */
	bool failed = false, group_failed = false;
	bool cancelled = false;

	level(uint64_t seed, unsigned at_depth, flavour as)
	    : how(as), depth(at_depth), random(seed)
	{
	}
	unsigned below(unsigned bound)
	{
		return static_cast<unsigned>(
			ktest_random_below(&random, bound));
	}
};

void name_datum(level &level, step &step)
{
	static const unsigned modes[] = { KTRT_IN,	    KTRT_IN,
					  KTRT_OUT,	    KTRT_INOUT,
					  KTRT_COMMUTATIVE, KTRT_REDUCTION };
	datum *datum = &level.data[level.below(nr_data)];
	/* Of those that commute it is left to chance who sees a failure. */
	unsigned mode = modes[level.below(level.how == GOOD ? 6 : 4)];

	for (unsigned i = 0; i < step.nr; i++)
		if (step.accesses[i].at == datum)
			return;
	step.accesses[step.nr++] = { datum, mode, 0, false };
}

step &make_step(level &level)
{
	level.steps.emplace_back();
	step &step = level.steps.back();
	unsigned nr = level.below(deps_most + 1);

	step.how = level.how;
	step.depth = level.depth;
	step.kind = level.below(12);
	step.mark = ktest_random(&level.random);
	step.fails = level.how != GOOD && !level.below(12);
	step.always = !level.below(6);
	while (nr--)
		name_datum(level, step);
	return step;
}

void follow_value(const step &step, access &access)
{
	uint64_t &model = access.at->model;

	access.known = access.mode != KTRT_COMMUTATIVE;
	access.expected = model;
	if (access.mode == KTRT_COMMUTATIVE || access.mode == KTRT_REDUCTION)
		model += step.mark;
	else if (access.mode & KTRT_OUT)
		model = derive_value(access.mode & KTRT_IN ? model : 0,
				     step.mark);
}

void follow_step(step &step)
{
	for (unsigned i = 0; i < step.nr; i++)
		step.skipped |= step.accesses[i].mode & KTRT_IN &&
				step.accesses[i].at->spoilt;
	for (unsigned i = 0; i < step.nr; i++) {
		access &access = step.accesses[i];

		if (step.runs())
			follow_value(step, access);
		if (access.mode & KTRT_OUT)
			access.at->spoilt = step.failed();
	}
}

} /* namespace */

#endif /* RUNTIME_TEST_CALLABLE_MIXES_HPP */
