#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: a future that a thread asks, or lets go of, which is not attached waits for
# its task as on any other; and one may outlive its runtime, as a group may.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx foreign <<-'END'
		#include <atomic>
		#include <chrono>
		#include <memory>
		#include <stdexcept>
		#include <string>
		#include <thread>
		#include <vector>

		static void nap(int ms)
		{
			std::this_thread::sleep_for(std::chrono::milliseconds(ms));
		}

		template <typename F> static void in_thread(F f)
		{
			std::thread(f).join();
		}

		static std::string slow()
		{
			nap(30);
			return std::string(100, 'x');
		}

		static void check_results()
		{
			auto one = ktrt::async(slow);
			auto two = ktrt::async(slow);
			auto three = ktrt::async([]() -> int {
				nap(5);
				throw std::out_of_range("three");
			});

			in_thread([&] {
				check(one.get() == std::string(100, 'x'));
				check(!one.valid());
				two.wait();
				try {
					three.get();
					check(false);
				} catch (const std::out_of_range &) {
				}
			});
			check(two.get() == std::string(100, 'x'));
			ktrt::wait();
		}

		static void check_let_go()
		{
			for (bool throws : { false, true }) {
				std::atomic<bool> over{ false };
				auto made = ktrt::async([&] {
					nap(30);
					over = true;
					if (throws)
						throw std::out_of_range("made");
					return std::string(100, 'x');
				});
				in_thread([&] {
					auto mine = std::move(made);
				});
				check(over);
			}
			ktrt::wait();
		}

		static void check_groups()
		{
			std::unique_ptr<ktrt::group> group(new ktrt::group);
			std::atomic<int> ran{ 0 };

			group->run([&] { nap(20); ran++; });
			in_thread([&] {
				group->wait();
				check(ran == 1);
			});
			group->run([&] { nap(20); ran++; });
			in_thread([&] {
				group.reset();
				check(ran == 2);
			});
			ktrt::wait();
		}

		/* More than can be attached at a time. */
		static void check_many()
		{
			std::vector<std::thread> threads;
			std::atomic<int> came{ 0 };

			for (int i = 0; i < 150; i++) {
				auto made = std::make_shared<ktrt::future<int>>(
					ktrt::async([=] { nap(1); return i; }));
				threads.emplace_back([made, i, &came] {
					if (i % 2)
						check(made->get() == i);
					came++;
				});
			}
			for (std::thread &thread : threads)
				thread.join();
			check(came == 150);
		}

		static void check_outliving()
		{
			ktrt::future<std::string> one, two, three, four;
			std::unique_ptr<ktrt::group> group;

			{
				ktrt::runtime runtime;

				one = ktrt::async(slow);
				two = ktrt::async(slow);
				three = ktrt::async(slow);
				four = ktrt::async([]() -> std::string {
					throw std::out_of_range("four");
				});
				group.reset(new ktrt::group);
				group->run([] {});
			}
			try {
				one.get();
				check(false);
			} catch (const ktrt::error &error) {
				check(error.task_code() == -ESRCH);
			}
			two = ktrt::future<std::string>();
			ktrt::runtime runtime;
			check(one.get() == std::string(100, 'x'));
			{
				auto mine = std::move(three);
			}
			try {
				four.get();
				check(false);
			} catch (const std::out_of_range &) {
			}
			group.reset();
			ktrt::wait();
		}

		int main()
		{
			for (int i = 0; i < 3; i++) {
				ktrt::runtime runtime;

				check_results();
				check_let_go();
				check_groups();
				check_many();
			}
			for (int i = 0; i < 3; i++)
				check_outliving();
			std::puts("all came");
		}
	END
}

@test "foreign threads and later runtimes wait rightly" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/foreign"
	[[ $output == "all came" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized foreign
}
