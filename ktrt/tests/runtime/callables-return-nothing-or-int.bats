#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: what a task returns is a code, so a callable that returns a truth, a sum or the
# like does not compile.  Where a value is wanted, or none is looked at, any may come.

bats_require_minimum_version 1.5.0
load support/cxx

@test "what returns another type is refused, in each way into a task" {
	run ! compile_cxx refused <<-'END'
		#include <functional>

		static bool truth() { return true; }
		enum color { RED };

		int main()
		{
			ktrt::group group;
			ktrt::graph graph;
			ktrt::settings with;
			int datum = 0;

			ktrt::spawn([&] { return datum == 0; });
			ktrt::spawn([] { return 2.5; }, ktrt::in(datum));
			ktrt::spawn(with, [] { return 1l; });
			ktrt::spawn(truth);
			ktrt::spawn(std::function<unsigned()>([] { return 1u; }));
			ktrt::spawn([] { return RED; }, ktrt::deps(nullptr, 0));
			group.run([&] { return &datum; });
			graph.add([] { return 'c'; });
			ktrt::run([] { return short(1); });
		}
	END
	[ "$(grep -c 'a task returns nothing, or int' <<<"$output")" -ge 9 ]
}

@test "nothing and int are taken, and any type where it is no code" {
	compile_cxx taken <<-'END'
		#include <functional>
		#include <string>

		static int five() { return 5; }

		int main()
		{
			ktrt::runtime runtime;
			ktrt::graph graph;
			int datum = 0;

			ktrt::spawn([&]() -> int & { return datum; });
			ktrt::spawn([&]() noexcept { datum = 0; });
			ktrt::spawn(std::function<int()>([] { return 0; }));
			graph.add([] {});
			graph.run();
			ktrt::parallel_for(0, 9, [](int i) { return i == 3; });
			check(ktrt::async([] { return true; }).get());
			check(ktrt::async([] { return std::string("a"); }).get() == "a");
			try {
				ktrt::run(five);
				check(!"5 was lost");
			} catch (const ktrt::error &error) {
				check(error.task_code() == 5);
			}
			ktrt::wait();
			std::puts("taken");
		}
	END
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/taken"
	[[ $output == taken && -z $stderr ]]
}
