#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# C++: a process ends with the status that it says although objects of the runtime still
# exist: the child of a fork, and by exit() in a task or in any thread.

bats_require_minimum_version 1.5.0
load support/cxx

setup_file() {
	compile_cxx ends <<-'END'
		#include <cstring>
		#include <stdexcept>
		#include <sys/wait.h>
		#include <thread>
		#include <unistd.h>

		/* 7, from a child; else what is wrong. */
		static int status_of(pid_t pid)
		{
			int status;

			check(pid > 0 && waitpid(pid, &status, 0) == pid);
			check(WIFEXITED(status));
			return WEXITSTATUS(status);
		}

		/* The parent's alarm is not the child's.  A fork beside a thread that begins
		 * takes the sanitizer's locks along, for which the child waits for ever. */
		static pid_t fork_bounded()
		{
		#ifdef __SANITIZE_ADDRESS__
			const unsigned most_s = 20;
			usleep(200000);
		#else
			const unsigned most_s = 60;
		#endif
			pid_t pid = fork();

			if (!pid)
				alarm(most_s);
			return pid;
		}

		static int fork_in_block(bool throws)
		{
			ktrt::runtime runtime(2);
			ktrt::scope scope;
			ktrt::group lost, failed;
			int pipe_ends[2];
			char byte;

			check(!pipe(pipe_ends));
			lost.run([&] { check(read(pipe_ends[0], &byte, 1) == 1); });
			failed.run([] {});
			ktrt::future<int> made = ktrt::async([] { return 4; });
			made.wait();
			failed.wait();
			pid_t pid = fork_bounded();
			if (!pid) {
				check(made.get() == 4);
				if (throws)
					throw std::runtime_error("child");
				return 7;
			}
			check(status_of(pid) == 7);
			check(write(pipe_ends[1], "x", 1) == 1);
			lost.wait();
			return 0;
		}

		static int fork_and_throw()
		{
			try {
				return fork_in_block(true);
			} catch (const std::runtime_error &) {
				return 7;
			}
		}

		/* The child begins its own while the parent's object is there. */
		static int fork_and_begin()
		{
			ktrt::runtime runtime(2);
			int sum = 0;

			pid_t pid = fork_bounded();
			if (pid) {
				check(status_of(pid) == 7);
				return 0;
			}
			{
				ktrt::runtime own(2);
				ktrt::spawn([&] { sum++; });
				ktrt::wait();
			}
			return sum == 1 ? 7 : 1;
		}

		static ktrt::runtime &lasting()
		{
			static ktrt::runtime runtime(2);

			return runtime;
		}

		static int fork_with_static()
		{
			lasting();
			ktrt::run([] {});
			pid_t pid = fork_bounded();
			if (!pid)
				exit(7);
			check(status_of(pid) == 7);
			/* A task that returns in the child ends it by exit(0). */
			ktrt::run([&] { pid = fork_bounded(); });
			check(status_of(pid) == 0);
			return 0;
		}

		static void exit_in_thread(bool attaches)
		{
			std::thread([=] {
				if (attaches)
					check(!ktrt_attach());
				ktrt::run([] {});
				exit(3);
			}).join();
		}

		int main(int argc, char **argv)
		{
			const char *way = argc > 1 ? argv[1] : "";

			alarm(90);
			if (!std::strcmp(way, "block"))
				return fork_in_block(false);
			if (!std::strcmp(way, "throw"))
				return fork_and_throw();
			if (!std::strcmp(way, "begin"))
				return fork_and_begin();
			if (!std::strcmp(way, "static"))
				return fork_with_static();
			lasting();
			if (!std::strcmp(way, "task"))
				ktrt::spawn([] { exit(3); });
			if (!std::strcmp(way, "below"))
				ktrt::spawn([] {
					ktrt::spawn([] { exit(3); });
					ktrt::wait();
				});
			if (!std::strcmp(way, "thread"))
				exit_in_thread(false);
			if (!std::strcmp(way, "attached"))
				exit_in_thread(true);
			if (!std::strcmp(way, "main"))
				exit(3);
			ktrt::wait();
			return 1;
		}
	END
}

@test "the child of a fork leaves the blocks of its parent" {
	for way in block throw begin static; do
		run -0 --separate-stderr "$BATS_FILE_TMPDIR/ends" "$way"
		[[ -z $output$stderr ]]
	done
}

@test "exit() ends the process in a task and in any thread" {
	for way in main task below thread attached; do
		run -3 --separate-stderr "$BATS_FILE_TMPDIR/ends" "$way"
		[[ -z $output$stderr ]]
	done
}

@test "sanitizers find nothing in that" {
	# What a child was left by threads that it does not have is lost.
	export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
	run_sanitized ends env || [[ $? = 1 ]]
	for way in block throw begin static; do
		for _ in 1 2 3; do
			run "$BATS_FILE_TMPDIR/ends-sanitized" "$way"
			[[ $output == *WIFEXITED* ]] || break
		done
		[[ $status = 0 ]]
	done
	for way in main task below thread attached; do
		run -3 "$BATS_FILE_TMPDIR/ends-sanitized" "$way"
	done
}
