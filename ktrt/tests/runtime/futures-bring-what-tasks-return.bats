#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: a future brings what its task returned or threw; one that is let go of
# loses no exception.  Groups run callables, and dependences may be known at run
# time only.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx futures <<-'END'
		#include <array>
		#include <atomic>
		#include <memory>
		#include <stdexcept>
		#include <string>
		#include <vector>

		static long fib(int n)
		{
			if (n < 2)
				return n;
			auto one = ktrt::async([=] { return fib(n - 1); });
			long two = fib(n - 2);
			return one.get() + two;
		}

		static void check_results()
		{
			std::vector<ktrt::future<std::string>> texts;
			int datum = 0, runs = 0;

			check(fib(12) == 144);
			for (int i = 0; i < 50; i++)
				texts.push_back(ktrt::async(
					[i, &datum] {
						check(datum++ == i);
						return std::to_string(i);
					},
					ktrt::inout(datum)));
			for (int i = 50; i--;)
				check(texts[i].get() == std::to_string(i));
			auto owner = ktrt::async(
				[] { return std::unique_ptr<int>(new int(3)); });
			check(owner.valid() && *owner.get() == 3);
			check(!owner.valid());
			auto nothing = ktrt::async([&] { runs++; });
			nothing.wait();
			nothing.wait();
			nothing.get();
			check(runs == 1);
			try {
				nothing.get();
				check(false);
			} catch (const ktrt::error &error) {
				check(error.task_code() == -EINVAL);
			}
		}

		static int throws()
		{
			throw std::runtime_error("thrown");
		}

		static void check_exceptions()
		{
			auto one = ktrt::async(throws);

			one.wait();
			try {
				one.get();
				check(false);
			} catch (const std::runtime_error &error) {
				check(error.what() == std::string("thrown"));
			}
			ktrt::wait();
			for (bool waits : { false, true }) {
				{
					auto let_go = ktrt::async(throws);
					if (waits)
						let_go.wait();
				}
				try {
					ktrt::wait();
					check(false);
				} catch (const std::runtime_error &) {
				}
			}
			ktrt::wait();
		}

		static void check_spans()
		{
			int data[40] = { 0 }, sum = 0;
			std::vector<ktrt::dep> all;
			std::atomic<int> nr{ 0 };
			ktrt::group group;

			for (int &datum : data) {
				all.push_back(ktrt::in(datum));
				ktrt::spawn([&] { datum = 1; }, ktrt::out(datum));
			}
			all.push_back(ktrt::inout(sum));
			ktrt::spawn([&] {
				for (int datum : data)
					sum += datum;
			}, all);
			std::array<ktrt::dep, 1> again = { { ktrt::inout(sum) } };
			group.run([&] { sum *= 2; }, again);
			ktrt::settings with;
			with.priority = 1;
			ktrt::spawn(with, [&] { sum++; },
				    ktrt::deps(again.data(), 1));
			ktrt::spawn([&] { nr++; }, std::vector<ktrt::dep>());
			group.run([&] { nr++; });
			group.wait();
			ktrt::wait();
			check(sum == 81 && nr == 2);

			ktrt::graph graph;
			graph.add([&] { sum = 3; }, ktrt::out(sum));
			graph.add([&] { sum += 4; }, again);
			graph.run();
			check(sum == 7);
		}

		static void check_threads()
		{
			ktrt::per_thread<std::vector<int>> numbers;
			std::size_t nr = 0;
			int datum = 0;

			for (int i = 0; i < 500; i++)
				ktrt::spawn([&, i] {
					numbers.local().push_back(i);
				});
			ktrt::spawn([&] { datum = 5; }, ktrt::out(datum));
			ktrt::wait_for(ktrt::in(datum));
			check(datum == 5);
			ktrt::wait();
			numbers.each([&](const std::vector<int> &some) {
				nr += some.size();
			});
			check(nr == 500);
		}

		static void check_all()
		{
			check_threads();
			for (int i = 0; i < 20; i++) {
				check_results();
				check_exceptions();
				check_spans();
			}
		}

		int main()
		{
			ktrt::runtime runtime;

			check_all();
			ktrt::run(check_all);
			std::puts("all came");
		}
	END
}

@test "results and exceptions come" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/futures"
	[[ $output == "all came" && -z $stderr ]]
}

@test "the same on one CPU" {
	run -0 --separate-stderr timeout 100 taskset -c 0 \
		"$BATS_FILE_TMPDIR/futures"
	[[ $output == "all came" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized futures
}
