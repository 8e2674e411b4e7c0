#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# In C++ too: callables that read what one that threw was to write are skipped and
# destroyed, those that commute take turns, and reducers are whole for readers.

bats_require_minimum_version 1.5.0
load support/cxx

@test "callables after one that threw are skipped and destroyed" {
	compile_cxx skipped <<-'END'
		#include <array>
		#include <memory>
		#include <string>

		static std::atomic<int> alive, ran;

		struct counted {
			counted() { alive++; }
			counted(const counted &) { alive++; }
			counted(counted &&) noexcept { alive++; }
			~counted() { alive--; }
		};

		template <typename F> static std::string thrown(F f)
		{
			try {
				f();
			} catch (const ktrt::error &e) {
				return std::to_string(e.task_code());
			} catch (const std::exception &e) {
				return e.what();
			}
			return "nothing";
		}

		static const std::string cancelled = std::to_string(-ECANCELED);

		static void test()
		{
			int x = 0, y = 0;
			counted kept;
			std::unique_ptr<int> moved(new int(1));
			std::array<char, 200> large{};

			ktrt::spawn([&] { throw std::runtime_error("first"); },
				    ktrt::out(x));
			ktrt::spawn([&] { ran++; }, ktrt::in(x));
			ktrt::spawn([&, kept] { ran++; }, ktrt::in(x), ktrt::out(y));
			ktrt::spawn([&, large] { ran += 1 + large[0]; },
				    ktrt::inout(y));
			ktrt::settings always;
			always.always = true;
			bool told = false;
			ktrt::spawn(always, [&, kept] { told = ktrt_cancelled(); },
				    ktrt::in(y));
			check(thrown(ktrt::wait) == "first");
			check(ran == 0 && alive == 1 && told);

			ktrt::spawn([&] { throw std::runtime_error("second"); },
				    ktrt::out(x));
			auto late = ktrt::async([&] { return x; }, ktrt::in(x));
			check(thrown([&] { ktrt::wait_for(ktrt::in(x)); }) ==
			      cancelled);
			check(thrown([&] { late.get(); }) == cancelled);
			check(thrown(ktrt::wait) == "second");
			auto good = ktrt::async([&] { return x; }, ktrt::in(x));
			check(good.get() == 0);

			bool fails = true;
			ktrt::graph graph;
			graph.add([&] {
				if (fails)
					throw std::runtime_error("node");
			}, ktrt::out(x));
			graph.add([&] { ran++; }, ktrt::in(x));
			check(thrown([&] { graph.run(); }) == "node" && ran == 0);
			fails = false;
			graph.run();
			check(ran == 1);
			ran = 0;
		}

		int main()
		{
			for (unsigned workers : { 0, 1 }) {
				ktrt::runtime runtime(workers);
				for (int i = 0; i < 100; i++)
					test();
			}
			check(alive == 0);
		}
	END
	"$BATS_FILE_TMPDIR/skipped"
	run_sanitized skipped
}

@test "callables that commute take turns, and reducers are whole" {
	compile_cxx sums <<-'END'
		#include <functional>
		#include <map>
		#include <string>

		static void test()
		{
			std::map<int, int> map;
			std::string text = "<";
			long sum = 3;
			ktrt::reducer<long> longs(sum, 0, std::plus<long>());
			ktrt::reducer<std::string> texts(
				text, std::string(),
				[](std::string a, std::string b) { return a + b; });

			for (int i = 0; i < 500; i++) {
				ktrt::spawn([&, i] { map[i % 7]++; },
					    ktrt::commutative(map));
				ktrt::spawn([&, i] { longs.local() += i; },
					    longs.dep());
				ktrt::spawn([&] { texts.local() += "x"; },
					    texts.dep());
			}
			long seen = 0;
			ktrt::spawn([&] { seen = sum; }, ktrt::in(sum));
			std::size_t length = 0;
			ktrt::spawn([&] { length = text.size(); },
				    ktrt::inout(text));
			ktrt::wait();
			check(seen == 3 + 499 * 500 / 2 && length == 501);
			int all = 0;
			for (auto &one : map)
				all += one.second;
			check(all == 500);
			ktrt::spawn([&] { longs.local() += 1; }, longs.dep());
			ktrt::wait();
			check(sum == seen + 1);
			bool refused = false;
			try {
				longs.local();
			} catch (const ktrt::error &) {
				refused = true;
			}
			check(refused);
		}

		int main()
		{
			for (unsigned workers : { 0, 1 }) {
				ktrt::runtime runtime(workers);
				for (int i = 0; i < 20; i++)
					test();
			}
		}
	END
	"$BATS_FILE_TMPDIR/sums"
	run_sanitized sums
}
