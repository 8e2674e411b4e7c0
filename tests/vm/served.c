/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktaskd serves programs that nobody has written for it: of a static runtime, into which
 * no shim can be put, and of a JVM, whose collector maps and fills the heap.
 *
 * They are made by tests/vm/Served.pm and tell by their status whether they were served.
 */
#include <unistd.h>

#include "guest.h"
#include "made_ahead.h"

#define TOUCHER "toucher"
#define JAVA_NAME "java"
#define JVM "/jvm/bin/java"

static void a_program_is_served(const char *test, const char *name,
				const char *path, const char *argument)
{
	pid_t daemon;
	int status;

	if (access(path, X_OK)) {
		say_verdict(true, test, "there is no %s", path);
		return;
	}
	daemon = start_daemon("--name", name);
	status = run_program(path, argument);
	kill_process(daemon);
	say_verdict(status == 0, test, status ? "status %d" : NULL, status);
}

void test_served(void)
{
	struct page_sizes sizes;

	if (!is_daemon_here("programs-are-served"))
		return;
	if (begin_small_pages(&sizes)) {
		a_program_is_served("a-static-golang-program-is-served",
				    TOUCHER, "/" TOUCHER, NULL);
		a_program_is_served("a-jvm-that-fills-its-heap-is-served",
				    JAVA_NAME, JVM, "@/jvm/filled");
		a_program_is_served("a-jvm-may-touch-its-heap-before",
				    JAVA_NAME, JVM, "@/jvm/touched");
	}
	end_small_pages(&sizes);
}
