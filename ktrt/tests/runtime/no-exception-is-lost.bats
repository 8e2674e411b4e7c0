#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: of many tasks that throw the first exception itself is thrown where they are
# waited for, by a call or at the end of a block, and the others are destroyed.

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
			std::atomic<bool> over(false), here(false);

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
			ktrt::runtime runtime;
			std::thread guest([&] {
				ktrt_attach();
				here = true;
				while (!over)
					std::this_thread::yield();
				ktrt_detach();
			});
			while (!here)
				std::this_thread::yield();
			throw_in_order(none);
			/* It goes on, and has kept what was thrown. */
			try {
				runtime.stop();
				check(!"stopped");
			} catch (const ktrt::error &error) {
				check(error.task_code() == -EBUSY);
			}
			over = true;
			guest.join();
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
