#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: a block that has a scope is not left, by an exception either, before the
# tasks that use its variables are complete.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx scopes <<-'END'
		#include <atomic>
		#include <chrono>
		#include <stdexcept>
		#include <thread>

		static std::atomic<int> gone_early, used;

		/* Tells for a while after its end that it is gone. */
		struct local {
			std::atomic<bool> *here;
			explicit local(std::atomic<bool> *h) : here(h)
			{ *here = true; }
			~local() { *here = false; }
		};

		static void use(const std::atomic<bool> *here)
		{
			std::this_thread::sleep_for(
				std::chrono::milliseconds(2));
			gone_early += !*here;
			used++;
		}

		static void leave(int how, std::atomic<bool> *here)
		{
			local variable(here);
			ktrt::scope waits;

			for (int i = 0; i < 4; i++)
				ktrt::spawn([=] { use(here); });
			if (how == 1)
				return;
			if (how == 2)
				throw std::runtime_error("block");
		}

		static int try_leaving(int how)
		{
			static std::atomic<bool> here;

			try {
				leave(how, &here);
			} catch (const std::runtime_error &error) {
				return 1;
			}
			return 0;
		}

		int main()
		{
			ktrt::runtime runtime;

			for (int how = 0; how < 3; how++) {
				used = 0;
				/* By the thread itself, and in a task. */
				check(try_leaving(how) == (how == 2));
				ktrt::run([=] {
					check(try_leaving(how) == (how == 2));
				});
				check(used == 8);
			}
			check(gone_early == 0);
			std::puts("all waited");
		}
	END
}

@test "no way out of a block is faster than its tasks" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/scopes"
	[[ $output == "all waited" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized scopes
}
