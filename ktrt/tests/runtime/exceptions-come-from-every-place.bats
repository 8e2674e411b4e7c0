#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: the operation of a reduction, the copy of a callable, of a neutral value or of a
# thread's object, and the copy or move of a future's value may throw: that comes out where
# the call is made, or where the task is waited for, everything is destroyed once, and what
# comes next works.  So it does after a task that throws while events are outstanding, that
# leaves by pthread_exit(), or that has weak dependences and was cancelled.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx places <<-'END'
		#include <atomic>
		#include <functional>
		#include <memory>
		#include <stdexcept>
		#include <thread>

		static std::atomic<int> alive, ran, left;

		/* The @left-th of what calls it throws. */
		static void step()
		{
			if (!--left)
				throw std::out_of_range("step");
		}

		enum moves { BY_MOVE, BY_COPY };

		/* Its copy may throw; so may its move, or it cannot. */
		template <moves how> struct object {
			std::unique_ptr<int> value{ new int(1) };
			object() { alive++; }
			explicit object(int v) : value(new int(v)) { alive++; }
			object(const object &o)
			{
				step();
				value.reset(new int(*o.value));
				alive++;
			}
			object(object &&o) noexcept(how == BY_MOVE)
			{
				if (how == BY_COPY)
					step();
				value = std::move(o.value);
				alive++;
			}
			object &operator=(object &&o)
			{
				value = std::move(o.value);
				return *this;
			}
			~object() { alive--; }
			void operator()() const { ran += *value; }
		};

		template <typename F> static bool throws(F f)
		{
			try {
				f();
			} catch (const std::out_of_range &) {
				return true;
			}
			return false;
		}

		/* As long as something of it throws; then nothing does. */
		template <typename F> static int each_step(F f)
		{
			int nr = 1;

			for (left = nr; throws(f); left = ++nr) {
				left = 0;
				ktrt::wait();
				check(alive == 0);
			}
			left = 0;
			ktrt::wait();
			check(alive == 0);
			return nr - 1;
		}

		static void check_reductions()
		{
			typedef object<BY_MOVE> value;
			int nr = each_step([] {
				value all = ktrt::reduce(0, 60, value(0), [](int i) {
					return value(i);
				}, [](value a, value b) {
					step();
					*a.value += *b.value;
					return a;
				}, 1);
				check(*all.value == 59 * 60 / 2);
			});
			check(nr >= 60);
			/* Those that join parts. */
			check(throws([] {
				ktrt::reduce(0, 60, value(0), [](int i) {
					return value(i);
				}, [](value a, value b) -> value {
					if (*b.value == 59)
						throw std::out_of_range("op");
					*a.value = *b.value;
					return a;
				}, 1);
			}));
			check(alive == 0);
		}

		/* The copies that threads add to, and those that are made for all threads. */
		static void check_copies()
		{
			typedef object<BY_MOVE> value;
			int nr = each_step([] {
				value total(0);
				ktrt::reducer<value> sum(total, value(0),
					[](value a, value b) {
						*a.value += *b.value;
						return a;
					});

				for (int i = 0; i < 20; i++)
					ktrt::spawn([&] { ++*sum.local().value; },
						    sum.dep());
				ktrt::wait();
				check(*total.value == 20);
			});
			check(nr >= 1);
			nr = each_step([] {
				value first(7);
				ktrt::per_thread<value> objects(first);

				objects.each([](value &one) { check(*one.value == 7); });
			});
			check(nr == ktrt_thread_indices());
		}

		/* By each way into a task. */
		template <moves how> static void check_callables()
		{
			typedef void (*way)(const object<how> &, int &);
			static const way ways[] = {
				[](const object<how> &o, int &) { ktrt::spawn(o); },
				[](const object<how> &o, int &datum) {
					ktrt::spawn(o, ktrt::inout(datum));
				},
				[](const object<how> &o, int &datum) {
					ktrt::settings with;
					with.always = true;
					ktrt::spawn(with, o, ktrt::weak_out(datum));
				},
				[](const object<how> &o, int &) {
					ktrt::settings with;
					with.undeferred = true;
					ktrt::spawn(with, o);
				},
				[](const object<how> &o, int &) { ktrt::run(o); },
				[](const object<how> &o, int &datum) {
					ktrt::group group;
					group.run(o, ktrt::in(datum));
				},
				[](const object<how> &o, int &) {
					ktrt::async(o).get();
				},
				[](const object<how> &o, int &datum) {
					ktrt::async(o, ktrt::inout(datum));
				},
				[](const object<how> &o, int &datum) {
					ktrt::graph graph;
					graph.add(o, ktrt::out(datum));
					graph.run();
				},
				[](const object<how> &o, int &) {
					std::function<void()> erased = o;
					ktrt::spawn(std::move(erased));
				},
			};

			for (way one : ways) {
				int datum = 0;

				ran = 0;
				check(each_step([&] {
					object<how> callable;
					one(callable, datum);
				}) >= 1);
				check(ran == 1);
			}
		}

		template <moves how> static void check_values()
		{
			int nr = each_step([] {
				object<how> first(5);
				auto made = ktrt::async([&] { return first; });

				made.wait();
				object<how> taken = made.get();
				check(*taken.value == 5);
			});
			/* Of the copy; and of the move out of the future. */
			check(nr >= (how == BY_MOVE ? 1 : 2));
			each_step([] {
				object<how> first(5);
				auto let_go = ktrt::async([&] { return first; });

				let_go.wait();
				let_go = ktrt::future<object<how>>();
				ktrt::wait();
			});
		}

		static int code_of(std::function<void()> f)
		{
			try {
				f();
			} catch (const ktrt::error &error) {
				return error.task_code();
			}
			return 0;
		}

		/* The task fails only when it is complete, and with it who reads the datum. */
		static void check_events()
		{
			std::atomic<ktrt_task *> held{ nullptr };
			std::atomic<bool> over{ false };
			int datum;

			ran = 0;
			{
				object<BY_MOVE> captured;

				left = 1000;
				ktrt::spawn([=, &held] {
					(void)captured;
					ktrt_events_add(1);
					held = ktrt_self();
					throw std::out_of_range("held");
				}, ktrt::out(datum));
			}
			ktrt::spawn([] { ran++; }, ktrt::in(datum));
			std::thread stranger([&] {
				while (!held)
					std::this_thread::yield();
				over = true;
				ktrt_events_done(held, 1);
			});
			check(throws(ktrt::wait));
			check(over && ran == 0 && alive == 0);
			stranger.join();
		}

		/* What is on the stack is destroyed, and the task fails. */
		static void leave()
		{
			object<BY_MOVE> local;

			pthread_exit(nullptr);
		}

		struct leaving {
			object<BY_MOVE> captured;
			void operator()() const { leave(); }
		};

		static void check_leaving()
		{
			static int datum;
			static const std::function<void()> ways[] = {
				[] { ktrt::spawn(leaving()); ktrt::wait(); },
				[] { ktrt::spawn([] { leave(); }); ktrt::wait(); },
				[] { ktrt::spawn(leave); ktrt::wait(); },
				[] {
					ktrt::spawn(leaving(), ktrt::out(datum));
					ktrt::wait();
				},
				[] {
					ktrt::group group;
					group.run(leaving());
					group.wait();
				},
				[] { ktrt::async(leaving()).get(); },
				[] { ktrt::run(leaving()); },
				[] {
					ktrt::graph graph;
					graph.add(leaving());
					graph.run();
				},
			};

			for (const std::function<void()> &way : ways) {
				left = 1000;
				check(code_of(way) == -ECANCELED);
				check(alive == 0);
				ktrt::spawn([] {}, ktrt::inout(datum));
				ktrt::wait();
			}
		}

		/* Cancelled before it begins, or when its children wait. */
		static void check_cancelled(bool begins, const ktrt::settings &with,
					    const ktrt::dep &weak)
		{
			std::atomic<bool> begun{ false }, open{ false };
			object<BY_MOVE> captured;
			ktrt::settings in_group = with;
			ktrt::group group;
			int *datum = const_cast<int *>(
				static_cast<const int *>(weak.raw.addr));
			int gate = 0, own = 0;
			auto hold = [&] {
				while (!open)
					ktrt::yield();
			};

			ran = 0;
			in_group.group = group.raw();
			if (!begins)
				ktrt::spawn(hold, ktrt::out(gate));
			left = 1000;
			ktrt::spawn(in_group, [=, &begun, &own, &hold] {
				if (begins)
					ktrt::spawn(hold, ktrt::out(own));
				ktrt::spawn([=] { (void)captured; ran++; },
					    ktrt::inout(*datum), ktrt::in(own));
				begun = true;
			}, ktrt::in(gate), weak);
			ktrt::spawn([] { ran += 10; }, ktrt::in(*datum));
			while (begins && !begun)
				ktrt::yield();
			group.cancel();
			open = true;
			check(code_of([&] { group.wait(); }) == -ECANCELED);
			check(code_of([] { ktrt::wait(); }) == -ECANCELED);
			check(ran == 0);
			/* The waits have told it. */
			ktrt::spawn([] { ran++; }, ktrt::inout(*datum));
			ktrt::wait();
			check(ran == 1);
		}

		static void check_weak()
		{
			ktrt::settings none, early;
			int datum = 0;

			early.early_release = true;
			for (bool begins : { false, true }) {
				check_cancelled(begins, none, ktrt::weak_inout(datum));
				check_cancelled(begins, none, ktrt::weak_out(datum));
				check_cancelled(begins, early, ktrt::weak_inout(datum));
				check_cancelled(begins, early, ktrt::inout(datum));
			}
			check(alive == 0);
		}

		static void check_all()
		{
			check_reductions();
			check_copies();
			check_callables<BY_MOVE>();
			check_callables<BY_COPY>();
			check_values<BY_MOVE>();
			check_values<BY_COPY>();
			check_events();
			check_leaving();
			check_weak();
		}

		int main()
		{
			ktrt::runtime runtime;

			for (int i = 0; i < 5; i++)
				check_all();
			std::puts("all came");
		}
	END
}

@test "what throws in a call, or in a task, comes out there" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/places"
	[[ $output == "all came" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized places
}
