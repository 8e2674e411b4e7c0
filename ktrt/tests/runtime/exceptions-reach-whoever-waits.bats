#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: what a task throws comes out where it is waited for, its body is destroyed
# once, and the runtime works on.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx throws <<-'END'
		#include <atomic>
		#include <memory>
		#include <stdexcept>
		#include <string>

		static std::atomic<int> alive, ran;

		/* A body that is more than bytes. */
		struct body {
			std::shared_ptr<int> more = std::make_shared<int>(7);
			bool throws;
			explicit body(bool t) : throws(t) { alive++; }
			body(const body &o) : more(o.more), throws(o.throws)
			{ alive++; }
			~body() { alive--; }
			void operator()()
			{
				ran++;
				if (throws)
					throw std::runtime_error("body");
			}
		};

		template <typename F> static std::string thrown(F f)
		{
			try {
				f();
			} catch (const ktrt::error &error) {
				return std::to_string(error.task_code());
			} catch (const std::runtime_error &error) {
				return error.what();
			} catch (int number) {
				return std::to_string(number);
			}
			return "nothing";
		}

		static void nested(int depth)
		{
			if (!depth)
				throw std::runtime_error("deep");
			ktrt::spawn([=] { nested(depth - 1); });
			if (depth % 2)
				ktrt::wait(); /* else the parent gets it */
		}

		static void throws_ten()
		{
			throw 10;
		}

		static void test()
		{
			ktrt::spawn([] { throw std::runtime_error("one"); });
			check(thrown(ktrt::wait) == "one");
			check(thrown(ktrt::wait) == "nothing");
			ktrt::spawn([] { throw 5; });
			check(thrown(ktrt::wait) == "5");
			ktrt::spawn([] { return 6; });
			check(thrown(ktrt::wait) == "6");
			ktrt::spawn([] { nested(9); });
			check(thrown(ktrt::wait) == "deep");
			check(thrown([] { ktrt::run([] { nested(4); }); })
			      == "deep");

			for (int i = 0; i < 200; i++)
				ktrt::spawn(body(i % 3 == 0));
			check(thrown(ktrt::wait) == "body");
			check(alive == 0);

			int datum = 0;
			ktrt::spawn([] { throw std::runtime_error("first"); },
				    ktrt::out(datum));
			for (int i = 0; i < 10; i++)
				ktrt::spawn([&] { datum++; },
					    ktrt::inout(datum));
			check(thrown(ktrt::wait) == "first");
			check(datum == 0); /* successors are skipped */

			ktrt::group group;
			ktrt::settings in_group;
			in_group.group = group.raw();
			ktrt::spawn(in_group, [] { throw 8; });
			check(thrown([&] { group.wait(); }) == "8");
			check(thrown(ktrt::wait) == "nothing");
			/* Cancelled or not, each is destroyed. */
			for (int i = 0; i < 100; i++)
				ktrt::spawn(in_group, body(false));
			group.cancel();
			thrown([&] { group.wait(); });
			check(alive == 0);
			check(thrown([] { ktrt::run([] {}); }) == "nothing");

			/* Callables of every kind. */
			const auto constant = [] { throw 9; };
			ktrt::spawn(constant);
			check(thrown(ktrt::wait) == "9");
			ktrt::spawn(throws_ten);
			check(thrown(ktrt::wait) == "10");
			ktrt::spawn(&throws_ten);
			check(thrown(ktrt::wait) == "10");
			const body kept(true);
			ktrt::spawn(kept);
			check(thrown(ktrt::wait) == "body");
			check(thrown([] { ktrt::run(throws_ten); }) == "10");
		}

		int main()
		{
			for (unsigned flags : { 0u, unsigned(KTRT_NO_UMT),
						unsigned(KTRT_FOLLOW) })
				for (unsigned workers = 0; workers < 3;
				     workers++) {
					ktrt::runtime runtime(workers, flags);
					for (int i = 0; i < 20; i++)
						test();
				}
			std::puts("all came out");
		}
	END
	compile_cxx leaves <<-'END'
		#include <unistd.h>

		static int leaves(void *)
		{
			throw 10;
		}

		int main()
		{
			ktrt_start(nullptr);
			ktrt_spawn(leaves, nullptr);
			/* By a worker; this thread would help if it waited. */
			for (int i = 0; i < 300; i++)
				usleep(100000);
			std::puts("went on");
		}
	END
}

@test "exceptions and codes come out where they are waited for" {
	run -0 "$BATS_FILE_TMPDIR/throws"
	[ "$output" = "all came out" ]
}

@test "one that leaves a task of C ends the process with a message" {
	ulimit -c 0
	run -134 "$BATS_FILE_TMPDIR/leaves"
	[[ $output == *"terminate called after throwing an instance of 'int'"* ]]
}

@test "sanitizers find nothing in the first" {
	run_sanitized throws
}
