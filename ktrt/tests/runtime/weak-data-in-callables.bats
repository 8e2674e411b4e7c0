#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: data may be named weakly, and released before a task's end; the graph that
# KTRT_DOT asks for tells weak dependences from others.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx weak <<-'END'
		#include <atomic>
		#include <stdexcept>

		static int sum(int *values, int nr)
		{
			int all = 0;

			for (int i = 0; i < nr; i++)
				all += values[i];
			return all;
		}

		/* Halves, each by tasks of its own, with no wait in between. */
		static void add_one(int *values, int nr)
		{
			if (nr == 1) {
				++*values;
				return;
			}
			for (int half = 0; half < 2; half++) {
				int *part = values + half * nr / 2;

				ktrt::spawn([=] { add_one(part, nr / 2); },
					    ktrt::range(nr > 2 ? KTRT_WEAK_INOUT
							       : KTRT_INOUT,
							part, nr / 2));
			}
		}

		static void use_halves()
		{
			int values[64] = {}, found = 0;

			for (int i = 0; i < 10; i++)
				ktrt::spawn([&] { add_one(values, 64); },
					    ktrt::range(KTRT_WEAK_INOUT, values,
							64));
			ktrt::spawn([&] { found = sum(values, 64); },
				    ktrt::range(KTRT_IN, values, 64),
				    ktrt::out(found));
			ktrt::wait();
			check(found == 640);
		}

		static void use_all()
		{
			int x = 0, y = 0, seen = 0;
			std::atomic<bool> was_seen(false);
			ktrt::settings early;

			early.early_release = true;
			ktrt::spawn([&] { x = 1; }, ktrt::out(x));
			ktrt::spawn(
				[&] {
					ktrt::spawn([&] { y = x + 1; },
						    ktrt::in(x), ktrt::out(y));
				},
				ktrt::weak_in(x), ktrt::weak_out(y));
			ktrt::spawn(
				[&] {
					ktrt::spawn([&] { y++; },
						    ktrt::inout(y));
				},
				ktrt::weak_inout(y));
			ktrt::spawn([&] { seen = y; }, ktrt::in(y),
				    ktrt::out(seen));
			ktrt::wait();
			check(seen == 3);

			ktrt::spawn(
				early,
				[&] {
					x = 5;
					ktrt::release(ktrt::out(x), ktrt::in(y));
					while (!was_seen)
						ktrt_yield();
				},
				ktrt::out(x), ktrt::in(y));
			ktrt::spawn([&] { was_seen = x == 5; }, ktrt::in(x));
			ktrt::wait();

			bool thrown = false;

			ktrt::spawn([&] { ktrt::release(ktrt::in(x)); },
				    ktrt::in(x));
			try {
				ktrt::wait();
			} catch (const ktrt::error &error) {
				thrown = error.code().value() == EINVAL;
			}
			check(thrown);

			/* It goes to whoever waits, and what it was to write is spoilt. */
			thrown = false;
			ktrt::spawn(
				[&] {
					ktrt::spawn(
						[] { throw std::out_of_range("x"); },
						ktrt::out(y));
				},
				ktrt::weak_out(y));
			ktrt::spawn([&] { std::exit(1); }, ktrt::in(y));
			try {
				ktrt::wait();
			} catch (const std::out_of_range &) {
				thrown = true;
			}
			check(thrown);
		}

		int main()
		{
			ktrt::runtime runtime;

			use_all();
			use_halves();
			ktrt::run(use_all);
			ktrt::run(use_halves);
			return 0;
		}
	END
	compile_cxx drawn <<-'END'
		int main()
		{
			ktrt::runtime runtime;
			int x = 0;

			ktrt::spawn([&] { x = 1; }, ktrt::out(x));
			ktrt::spawn([&] {
				ktrt::spawn([&] { x = 2; }, ktrt::out(x));
			}, ktrt::weak_out(x));
			ktrt::spawn([&] { check(x == 2); }, ktrt::in(x));
			ktrt::wait();
			return 0;
		}
	END
}

@test "tasks below see what was made before" {
	timeout 300 "$BATS_FILE_TMPDIR/weak"
}

@test "weak dependences are dotted" {
	export KTRT_DOT=$BATS_TEST_TMPDIR/graph.dot
	timeout 300 "$BATS_FILE_TMPDIR/drawn"
	[ "$(grep -c 'style=dotted' "$KTRT_DOT")" = 1 ]
	[ "$(grep -c -e '-> t[0-9]*;' "$KTRT_DOT")" = 1 ]
}

@test "sanitizers find nothing in that" {
	run_sanitized weak
}
