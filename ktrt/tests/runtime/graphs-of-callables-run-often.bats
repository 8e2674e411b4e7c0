#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: a graph keeps its callables, calls them in each run, and what one throws
# comes out of that run only.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx graphs <<-'END'
		#include <memory>
		#include <stdexcept>
		#include <string>

		static int alive;

		struct counted {
			counted() { alive++; }
			counted(const counted &) { alive++; }
			~counted() { alive--; }
		};

		static void check_runs()
		{
			ktrt::graph graph;
			std::string text;
			int sum = 0, runs = 0;
			bool fails = false;
			counted one;
			std::unique_ptr<int> three(new int(3));

			graph.add([&, one] { sum = 1; }, ktrt::out(sum));
			graph.add([&] { sum += *three; }, ktrt::inout(sum));
			int last = graph.add([&] {
				if (fails)
					throw std::runtime_error("as told");
				text = std::to_string(sum);
			}, ktrt::in(sum));
			int after = graph.add([&] { runs++; });
			graph.edge(last, after);
			for (int i = 1; i <= 100; i++) {
				fails = i % 10 == 0;
				text = "none";
				try {
					graph.run();
					check(!fails && text == "4");
				} catch (const std::runtime_error &error) {
					check(fails && text == "none");
				}
				/* Skipped where the one before failed. */
				check(runs == i - i / 10);
			}
			check(alive == 2);
			try {
				graph.edge(after, last);
				check(false);
			} catch (const ktrt::error &error) {
				check(error.task_code() == -EINVAL);
			}
		}

		int main()
		{
			ktrt::runtime runtime;

			check_runs();
			ktrt::run(check_runs);
			check(alive == 0);
			std::puts("all ran");
		}
	END
}

@test "each run calls what was added" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/graphs"
	[[ $output == "all ran" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized graphs
}
