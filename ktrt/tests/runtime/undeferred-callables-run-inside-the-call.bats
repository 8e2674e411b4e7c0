#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: with settings::undeferred a callable is called by spawn(), and below one
# with settings::final all are, whatever they are; what they throw reaches whoever waits.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx now <<-'END'
		#include <memory>
		#include <stdexcept>
		#include <vector>

		static std::vector<int> order;

		/* Captures of each kind. */
		static void descend(int depth)
		{
			check(ktrt::in_final());
			order.push_back(depth);
			if (!depth)
				return;
			auto shared = std::make_shared<int>(depth - 1);
			int data;

			ktrt::spawn([=] { descend(depth - 1); });
			ktrt::spawn([shared] { descend(*shared); });
			ktrt::spawn([=] { descend(depth - 1); },
				    ktrt::inout(data));
			check(shared.use_count() == 1);
		}

		static void expect(int depth, std::size_t &at)
		{
			check(order.at(at++) == depth);
			for (int i = 0; i < 3 && depth; i++)
				expect(depth - 1, at);
		}

		static void use()
		{
			ktrt::settings now, makes;
			int datum = 0, thread = 0;
			std::size_t at = 0;

			now.undeferred = true;
			ktrt::spawn([&datum] { datum = 1; },
				    ktrt::out(datum));
			ktrt::spawn(now,
				    [&] {
					    datum++;
					    thread = ktrt_thread_index() + 1;
				    },
				    ktrt::inout(datum));
			check(datum == 2 && thread == ktrt_thread_index() + 1);

			makes.final = true;
			order.clear();
			ktrt::spawn(makes, [] { descend(4); });
			ktrt::wait();
			expect(4, at);
			check(at == order.size());
			check(!ktrt::in_final());

			bool thrown = false;

			ktrt::spawn(now, [] { throw std::out_of_range("x"); });
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

			for (int i = 0; i < 20; i++) {
				use();
				ktrt::run(use);
			}
			return 0;
		}
	END
}

@test "what is to be done at once is done by spawn()" {
	timeout 300 "$BATS_FILE_TMPDIR/now"
}

@test "sanitizers find nothing in that" {
	run_sanitized now
}
