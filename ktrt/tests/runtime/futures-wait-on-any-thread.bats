#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: a future that a thread asks, or lets go of, which is not attached waits for
# its task as on any other; and one may outlive its runtime, as a group may: what
# their tasks have returned or thrown is there without a runtime, and in the next one.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx foreign <<-'END'
		#include <atomic>
		#include <cerrno>
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

		/* What is thrown, as text. */
		template <typename F> static std::string thrown(F f)
		{
			try {
				f();
			} catch (const std::exception &thrown) {
				return thrown.what();
			}
			return "nothing";
		}

		static std::string throws_slowly()
		{
			nap(10);
			throw std::out_of_range("slow");
		}

		static int returns_esrch()
		{
			return -ESRCH;
		}

		struct left {
			ktrt::future<std::string> one, two, three, bad, worse;
			std::unique_ptr<ktrt::group> fine, ended, waited, none;
		};

		static void leave(left &it)
		{
			ktrt::runtime runtime;

			it.one = ktrt::async(slow);
			it.two = ktrt::async(slow);
			it.three = ktrt::async(slow);
			it.bad = ktrt::async(throws_slowly);
			it.worse = ktrt::async(throws_slowly);
			it.fine.reset(new ktrt::group);
			it.ended.reset(new ktrt::group);
			it.waited.reset(new ktrt::group);
			it.none.reset(new ktrt::group);
			it.fine->run([] { slow(); });
			it.ended->run([] { throws_slowly(); });
			it.waited->run([] { throws_slowly(); });
			it.none->run(returns_esrch);
			runtime.stop();
		}

		static void check_left(left &it)
		{
			check(it.one.get() == std::string(100, 'x'));
			it.two.wait();
			check(it.two.get() == std::string(100, 'x'));
			check(thrown([&] { it.bad.wait(); }) == "nothing");
			check(thrown([&] { it.bad.get(); }) == "slow");
			it.worse = ktrt::future<std::string>();
			it.fine->wait();
			check(thrown([&] { it.fine.reset(); }) == "nothing");
			check(thrown([&] { it.waited->wait(); }) == "slow");
			check(thrown([&] { it.waited.reset(); }) == "nothing");
			check(thrown([&] {
				struct memory {
					ktrt::group *group;
					~memory() { operator delete(group); }
				} memory = { it.ended.release() };
				memory.group->~group();
			}) == "slow");
			try {
				it.none->wait();
				check(false);
			} catch (const ktrt::error &error) {
				check(error.task_code() == -ESRCH);
			}
			check(thrown([&] { it.none->wait(); }) == "nothing");
		}

		/* Without a runtime, in this or another thread; in the next runtime, in
		 * this or another thread. */
		static void check_outliving()
		{
			for (int way = 0; way < 4; way++) {
				std::unique_ptr<ktrt::runtime> next;
				left it;

				leave(it);
				if (way & 1)
					next.reset(new ktrt::runtime);
				if (way & 2)
					in_thread([&] { check_left(it); });
				else
					check_left(it);
				/* As it was let go of there. */
				check(thrown([&] {
					if (next)
						ktrt::wait();
				}) == (way == 1 ? "slow" : "nothing"));
			}
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

@test "foreign threads, later runtimes and none wait rightly" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/foreign"
	[[ $output == "all came" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized foreign
}
