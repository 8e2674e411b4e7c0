#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: callables of one type may do different things, as those of std::function.  A
# maker that has seen brief ones does not itself do one that waits for what it does later.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx makers <<-'END'
		#include <atomic>
		#include <functional>
		#include <future>
		#include <string>
		#include <vector>
		#include <unistd.h>

		typedef void (*pointer)();

		static int ends[2];
		static std::atomic<int> ran;

		static void be_brief()
		{
			ran++;
		}

		static void wait_for_maker()
		{
			char byte;

			check(read(ends[0], &byte, 1) == 1);
			ran++;
		}

		/* It cannot be moved without an exception. */
		struct wrapped {
			pointer f;
			std::string text;
			explicit wrapped(pointer p) : f(p), text(30, 'x') { }
			wrapped(const wrapped &) = default;
			void operator()() const
			{
				check(text.size() == 30);
				f();
			}
		};

		/* More than are made at once, or than caches hold. */
		template <typename M> static void make_in_task(M make)
		{
			const int learnt = 10000, many = 5000;
			int waiting = 0;

			ran = 0;
			for (int i = 0; i < learnt; i++)
				make(be_brief);
			ktrt::wait();
			for (int i = 0; i < many; i++) {
				bool waits = i % 250 == 100;

				make(waits ? wait_for_maker : be_brief);
				waiting += waits;
			}
			for (int i = 0; i < waiting; i++)
				check(write(ends[1], "x", 1) == 1);
			ktrt::wait();
			check(ran == learnt + many);
		}

		template <typename M> static void stand(M make)
		{
			for (int i = 0; i < 3; i++)
				ktrt::run([=] { make_in_task(make); });
		}

		int main()
		{
			ktrt_options options = KTRT_OPTIONS_INIT;

			options.workers = 2;
			options.max_threads = 200;
			check(!pipe(ends));
			check(!ktrt_start(&options));
			stand([](pointer f) { ktrt::spawn(f); });
			stand([](pointer f) { ktrt::spawn(std::function<void()>(f)); });
			stand([](pointer f) {
				int datum;
				ktrt::spawn(std::function<void()>(f),
					    ktrt::out(datum));
			});
			stand([](pointer f) {
				ktrt::settings with;
				with.always = true;
				ktrt::spawn(with, f);
			});
			stand([](pointer f) { ktrt::spawn(std::bind(f)); });
			stand([](pointer f) { ktrt::spawn(std::bind(wrapped(f))); });
			stand([](pointer f) {
				ktrt::spawn(std::packaged_task<void()>(f));
			});
			stand([](pointer f) { ktrt::spawn(std::ref(*f)); });
			{
				std::vector<ktrt::future<void>> futures;
				ktrt::group group;

				stand([&](pointer f) {
					std::function<void()> function(f);
					futures.push_back(ktrt::async(function));
				});
				stand([&](pointer f) {
					group.run(std::function<void()>(f));
				});
			}
			check(!ktrt_stop());
			std::puts("none stood");
		}
	END
}

@test "a maker does no callable that may wait for it" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/makers"
	[[ $output == "none stood" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized makers
}
