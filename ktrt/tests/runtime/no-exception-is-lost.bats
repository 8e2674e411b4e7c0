#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: of many tasks that throw the first exception itself is thrown where they are
# waited for, by a call or at the end of a block, and the others are destroyed.  A runtime
# that cannot end because a thread is attached says so, goes on, and keeps the exception.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx lost <<-'END'
		#include <atomic>
		#include <stdexcept>
		#include <string>
		#include <thread>

		static const int many = 1000;
		static std::atomic<int> alive;

		struct failure : std::runtime_error {
			int number;
			const failure *self; /* where it was when thrown */
			explicit failure(int n) : std::runtime_error("task"),
				number(n), self(this) { alive++; }
			failure(const failure &o) : std::runtime_error(o),
				number(o.number), self(o.self) { alive++; }
			~failure() { alive--; }
		};

		/* The number of what is thrown; -1: nothing; -2: lost. */
		template <typename F> static int thrown(F f)
		{
			try {
				f();
			} catch (const failure &f) {
				check(f.self == &f);
				return f.number;
			} catch (const ktrt::error &error) {
				return -2;
			}
			return -1;
		}

		static void throw_all(const ktrt::settings &with)
		{
			for (int i = 0; i < many; i++)
				ktrt::spawn(with, [=] { throw failure(i); });
		}

		static void throw_in_order(const ktrt::settings &with)
		{
			static int datum;

			for (int i = 0; i < many; i++)
				ktrt::spawn(with, [=] { throw failure(i); },
					    ktrt::inout(datum));
		}

		static void calls()
		{
			ktrt::settings none, in_group;
			ktrt::group group;

			in_group.group = group.raw();
			throw_all(none);
			check(thrown(ktrt::wait) >= 0);
			throw_in_order(none);
			check(thrown(ktrt::wait) == 0);
			throw_all(in_group);
			check(thrown([&] { group.wait(); }) >= 0);
			throw_in_order(in_group);
			check(thrown([&] { group.wait(); }) == 0);
			check(thrown(ktrt::wait) == -1);
			/* Up from children that nobody waits for. */
			for (int i = 0; i < many; i++)
				ktrt::spawn([=] {
					ktrt::spawn([=] { throw failure(i); });
				});
			check(thrown(ktrt::wait) >= 0);
			check(thrown([&] { ktrt::run([&] {
				throw_in_order(none); }); }) == 0);
			/* The cause, not what its maker threw because of it. */
			check(thrown([] { ktrt::run([] {
				int datum;
				ktrt::spawn([] { throw failure(5); },
					    ktrt::out(datum));
				ktrt::wait_for(ktrt::in(datum));
			}); }) == 5);
			/* Let go of in a task that was cancelled meanwhile. */
			check(thrown([] {
				ktrt::group group;
				group.run([&] {
					ktrt::future<void> made = ktrt::async(
						[] { throw failure(6); });
					made.wait();
					group.cancel();
				});
				group.wait();
			}) == 6);
			check(alive == 0);
		}

		static void ends_of_blocks()
		{
			ktrt::settings none;

			check(thrown([&] {
				ktrt::group group;
				ktrt::settings in_group;
				in_group.group = group.raw();
				throw_in_order(in_group);
			}) == 0);
			check(thrown([&] {
				ktrt::scope waits;
				throw_in_order(none);
			}) == 0);
			/* What leaves the block goes first. */
			check(thrown([&] {
				ktrt::scope waits;
				throw_in_order(none);
				throw failure(-7);
			}) == -7);
			check(thrown(ktrt::wait) == -1);
			check(alive == 0);
		}

		static void ends_of_runtimes()
		{
			ktrt::settings none;

			check(thrown([&] {
				ktrt::runtime runtime;
				throw_in_order(none);
			}) == 0);
			check(thrown([&] {
				ktrt::runtime runtime;
				throw_in_order(none);
				throw failure(-7);
			}) == -7);
			check(thrown([&] {
				ktrt::runtime runtime;
				ktrt::group group;
				group.run([] { throw failure(8); });
				runtime.stop();
			}) == 8);
			check(thrown([&] {
				ktrt::runtime runtime;
				ktrt::future<void> made =
					ktrt::async([] { throw failure(9); });
				runtime.stop();
				made.get();
			}) == 9);
			check(alive == 0);
		}

		/* A thread that is attached as long as this exists. */
		class guest {
			std::atomic<bool> over{ false }, here{ false };
			std::thread thread;
		    public:
			guest() : thread([this] {
				ktrt_attach();
				here = true;
				while (!over)
					std::this_thread::yield();
				ktrt_detach();
			})
			{
				while (!here)
					std::this_thread::yield();
			}
			~guest()
			{
				over = true;
				thread.join();
			}
		};

		template <typename F> static bool is_busy(F f)
		{
			try {
				f();
			} catch (const ktrt::error &error) {
				return error.task_code() == -EBUSY;
			}
			return false;
		}

		static void stop_now()
		{
			ktrt::detail::raise(ktrt_stop(), "stopping");
		}

		/* It goes on, and has kept what was thrown. */
		static void beside_guests()
		{
			std::unique_ptr<guest> attached;
			ktrt::settings none;

			check(is_busy([&] {
				ktrt::runtime runtime;
				attached.reset(new guest);
				throw_in_order(none);
			}));
			ktrt::spawn([] {});
			attached.reset();
			check(thrown(stop_now) == 0);
			/* What leaves the block goes first. */
			check(thrown([&] {
				ktrt::runtime runtime;
				attached.reset(new guest);
				throw_in_order(none);
				throw failure(-7);
			}) == -7);
			ktrt::spawn([] {});
			attached.reset();
			check(thrown(stop_now) == 0);
			check(ktrt_stop() == -ESRCH);

			ktrt::runtime runtime;
			attached.reset(new guest);
			throw_in_order(none);
			check(is_busy([&] { runtime.stop(); }));
			attached.reset();
			check(thrown([&] { runtime.stop(); }) == 0);
			check(alive == 0);
		}

		int main()
		{
			{
				ktrt::runtime runtime;
				for (int i = 0; i < 5; i++)
					calls();
				ends_of_blocks();
			}
			ends_of_runtimes();
			beside_guests();
			std::puts("none was lost");
		}
	END
}

@test "of a thousand that throw the first one comes out" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/lost"
	[[ $output == "none was lost" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized lost
}
