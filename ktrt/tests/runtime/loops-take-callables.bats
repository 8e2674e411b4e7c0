#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: loops call f(i) once for each i, reductions keep the order, exceptions come
# out.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx loops <<-'END'
		#include <atomic>
		#include <climits>
		#include <stdexcept>
		#include <string>
		#include <vector>

		static void check_loops()
		{
			std::vector<int> hits(10000);
			std::atomic<int> sum{ 0 };

			for (std::size_t grain : { 0, 1, 7, 100000 }) {
				ktrt::parallel_for(std::size_t(0), hits.size(),
						   [&](std::size_t i) { hits[i]++; },
						   grain);
				ktrt::parallel_for(-50, 50, [&](int i) {
					sum += i;
				}, grain);
			}
			for (int hit : hits)
				check(hit == 4);
			check(sum == -200);
			ktrt::parallel_for(3, 2, [](int) { check(false); });
		}

		static void check_reductions()
		{
			std::string expected = "<";

			for (int i = 0; i < 2000; i++)
				expected += std::to_string(i) + ",";
			/* The neutral one of strings is empty. */
			std::string text = ktrt::reduce(
				0, 2000, std::string(),
				[](int i) { return std::to_string(i) + ","; },
				[](std::string a, const std::string &b) {
					return std::move(a) + b;
				}, 3);
			check("<" + text == expected);
			check(ktrt::reduce(1, 101, 0L, [](int i) { return i; },
					   [](long a, long b) { return a + b; })
			      == 5050);
			check(ktrt::reduce(5, 5, 7, [](int) { return 1; },
					   [](int a, int b) { return a + b; })
			      == 7);
		}

		static void check_exceptions()
		{
			std::atomic<int> calls{ 0 };

			for (int i = 0; i < 100; i++) {
				try {
					ktrt::parallel_for(0, 100, [&](int at) {
						calls++;
						if (at == i)
							throw std::out_of_range("i");
					});
					check(false);
				} catch (const std::out_of_range &) {
				}
				try {
					ktrt::reduce(0, 100, std::string(1, 'a'),
						[&](int at) {
						if (at == i)
							throw std::out_of_range("i");
						return std::string(20, 'b');
					}, [](std::string a, std::string b) {
						return a + b;
					}, 1);
					check(false);
				} catch (const std::out_of_range &) {
				}
			}
			check(calls <= 10000);
			ktrt::wait();
		}

		/* With more indices than the type can count; the first call ends it. */
		template <typename I> static void check_wide(I first, I last)
		{
			std::atomic<int> wrong{ 0 };

			try {
				ktrt::parallel_for(first, last, [&](I i) {
					wrong += i < first || i >= last;
					throw std::out_of_range("i");
				});
				check(false);
			} catch (const std::out_of_range &) {
			}
			try {
				ktrt::reduce(first, last, 0, [&](I i) -> int {
					wrong += i < first || i >= last;
					throw std::out_of_range("i");
				}, [](int a, int b) { return a + b; });
				check(false);
			} catch (const std::out_of_range &) {
			}
			check(!wrong);
		}

		/* Also indices that are pointers. */
		static void check_ranges()
		{
			std::vector<int> hits(1000);

			check_wide(INT_MIN, INT_MAX);
			check_wide(LONG_MIN, LONG_MAX);
			check_wide(LLONG_MIN, LLONG_MAX);
			check_wide(-2, INT_MAX);
			check_wide(0ul, ULONG_MAX);
			ktrt::parallel_for<signed char>(-128, 127, [&](int i) {
				hits[i + 128]++;
			});
			ktrt::parallel_for(hits.data(), hits.data() + 1000,
					   [](int *hit) { ++*hit; });
			for (int i = 0; i < 1000; i++)
				check(hits[i] == 1 + (i < 255));
		}

		static void check_all()
		{
			check_loops();
			check_ranges();
			check_reductions();
			check_exceptions();
		}

		int main()
		{
			ktrt::runtime runtime;

			check_all();
			ktrt::run(check_all);
			std::puts("all done");
		}
	END
}

@test "each index once, in order where that counts" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/loops"
	[[ $output == "all done" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	run_sanitized loops
}
