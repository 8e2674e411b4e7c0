#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: a task of a cancelled group that has not begun is not run, whatever its
# callable is, and is destroyed; who waits for the group is told.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx cancels <<-'END'
		#include <atomic>
		#include <memory>

		static std::atomic<int> alive, ran;
		static std::atomic<bool> open;

		struct counted {
			counted() { alive++; }
			counted(const counted &) { alive++; }
			~counted() { alive--; }
		};

		static void wait_at_gate()
		{
			while (!open)
				ktrt::yield();
		}

		/* A hundred that come after one which is held. */
		template <typename F> static void cancel_all(F callable)
		{
			ktrt::group group;
			ktrt::settings in_group;
			int gate = 0, code = 0;

			ran = 0;
			open = false;
			in_group.group = group.raw();
			ktrt::spawn(wait_at_gate, ktrt::inout(gate));
			for (int i = 0; i < 100; i++)
				ktrt::spawn(in_group, callable,
					    ktrt::in(gate));
			group.cancel();
			open = true;
			try {
				group.wait();
			} catch (const ktrt::error &error) {
				code = error.task_code();
			}
			check(ran == 0);
			check(code == -ECANCELED);
			ktrt::wait();
		}

		int main()
		{
			ktrt::runtime runtime;

			for (int i = 0; i < 20; i++) {
				auto shared = std::make_shared<int>(i);
				counted one;

				cancel_all([] { ran++; });
				cancel_all([shared] { ran++; });
				cancel_all([one] { ran++; });
				check(shared.use_count() == 1);
				check(alive == 1);
			}
			std::puts("none ran");
		}
	END
}

@test "cancelled tasks do not run, with whatever captures" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/cancels"
	[[ $output == "none ran" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized cancels
}
