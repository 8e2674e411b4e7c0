#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: a callable goes into its task without an allocation, also if it has a
# destructor, and is destroyed once, whatever becomes of the task.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	# Since then new heeds alignment.
	STD=c++17 compile_cxx callables <<-'END'
		#include <array>
		#include <atomic>
		#include <cstdint>
		#include <memory>
		#include <string>
		#include <vector>

		static std::atomic<int> allocated, alive, called;

		__attribute__((noinline))
		void *operator new(std::size_t bytes)
		{
			void *memory = std::malloc(bytes);
			allocated++;
			if (!memory)
				std::abort();
			return memory;
		}
		__attribute__((noinline))
		void operator delete(void *memory) noexcept
		{
			std::free(memory);
		}
		__attribute__((noinline))
		void operator delete(void *memory, std::size_t) noexcept
		{
			std::free(memory);
		}

		template <std::size_t BYTES, bool NOTHROW> struct body {
			std::array<char, BYTES> bytes;
			body() { bytes.fill(7); alive++; }
			body(const body &other) : bytes(other.bytes) { alive++; }
			body(body &&other) noexcept(NOTHROW)
				: bytes(other.bytes) { alive++; }
			~body() { alive--; }
			void operator()() const
			{
				for (char byte : bytes)
					check(byte == 7);
				called++;
			}
		};

		struct alignas(64) aligned {
			char data[64];
			void operator()() const
			{
				check(reinterpret_cast<std::uintptr_t>(this) %
				      64 == 0);
				called++;
			}
		};

		template <typename F> static void make_many(int most)
		{
			int before = allocated, nr = 500;

			called = 0;
			for (int i = 0; i < nr; i++) {
				F made;
				ktrt::spawn(made);
				ktrt::spawn(std::move(made), ktrt::inout(before));
			}
			ktrt::wait();
			check(called == 2 * nr);
			check(alive == 0);
			check(allocated - before <= most * 2 * nr);
		}

		static void check_sizes()
		{
			int a = 1, b = 2, before = allocated;

			make_many<body<1, true>>(0);
			make_many<body<60, true>>(0);
			make_many<body<300, true>>(0);
			make_many<body<1, false>>(1);
			make_many<aligned>(1);
			called = 0;
			for (int i = 0; i < 1000; i++) {
				ktrt::spawn([] { called++; });
				ktrt::spawn([i] { called += i >= 0; });
				ktrt::spawn([&a, i] { called += a; });
				ktrt::spawn([&a, &b, i] {
					called += b - a;
					return 0;
				});
			}
			ktrt::wait();
			check(called == 4000);
			check(allocated - before <= 2000);
		}

		static void check_owned()
		{
			std::vector<int> numbers(10, 3);
			std::unique_ptr<int> one(new int(1));
			std::string text(100, 'x');
			std::shared_ptr<int> shared(new int(4));
			struct task {
				std::unique_ptr<int> one;
				void operator()() { called += *one; }
			} owner{ std::move(one) };

			called = 0;
			ktrt::spawn(std::move(owner));
			for (int i = 0; i < 100; i++)
				ktrt::spawn([=] {
					called += (int)text.size() + numbers[9] +
						  *shared;
				});
			ktrt::wait();
			check(called == 1 + 100 * 107);
			check(shared.use_count() == 1);
		}

		static void check_cancelled()
		{
			called = 0;
			{
				ktrt::group group;

				group.cancel();
				for (int i = 0; i < 100; i++) {
					group.run(body<8, true>());
					group.run(body<80, true>());
					group.run(body<8, false>());
				}
			}
			check(called == 0);
			check(alive == 0);
		}

		int main()
		{
			try {
				ktrt::spawn(body<8, true>());
				check(false);
			} catch (const ktrt::error &error) {
				check(error.task_code() == -ESRCH);
			}
			check(alive == 0);

			ktrt::runtime runtime;
			check_sizes();
			ktrt::run(check_sizes);
			check_owned();
			ktrt::run(check_owned);
			check_cancelled();
			ktrt::run(check_cancelled);
			std::puts("none allocated");
		}
	END
}

@test "a callable is in its task, and destroyed once" {
	run -0 --separate-stderr timeout 100 "$BATS_FILE_TMPDIR/callables"
	[[ $output == "none allocated" && -z $stderr ]]
}

@test "sanitizers find nothing in that" {
	STD=c++17 run_sanitized callables
}
