/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktaskd serves programs that nobody has written for it: of a static runtime, into which
 * no shim can be put, and of a JVM, whose collector maps and fills the heap.
 *
 * They are made by tests/vm/Served.pm and tell by their status whether they were served.
 * One that does not wait for the daemon is stopped now and then: what grows while it is
 * stopped was made by the daemon.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "made_ahead.h"

#define TOUCHER "toucher"
#define JAVA_NAME "java"
#define JVM "/jvm/bin/java"

/* A program that is stopped for so long whenever it has grown by so much, until the daemon
 * has made enough. */
#define HOLD_MS 60
#define STEP_PAGES (4 * MIB / PAGE)
#define ENOUGH_PAGES (MIB / PAGE)

static unsigned long resident_pages(pid_t pid)
{
	char path[40], text[100];
	unsigned long all, resident = 0;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	read_file(path, text, sizeof(text));
	sscanf(text, "%lu %lu", &all, &resident);
	return resident;
}

/* Return: false at its end. */
static bool stop_process(pid_t pid, int *status)
{
	kill(pid, SIGSTOP);
	return waitpid(pid, status, WUNTRACED) == pid && WIFSTOPPED(*status);
}

/* Return: its exit status; @made: pages that grew while it was stopped */
static int run_with_stops(const char *path, const char *argument,
			  unsigned long *made)
{
	unsigned long seen = 0, before;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl(path, path, argument, (char *)NULL);
		_exit(127);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		sleep_ms(1);
		if (*made >= ENOUGH_PAGES ||
		    resident_pages(pid) < seen + STEP_PAGES)
			continue;
		if (!stop_process(pid, &status))
			break;
		before = resident_pages(pid);
		sleep_ms(HOLD_MS);
		seen = resident_pages(pid);
		*made += seen > before ? seen - before : 0;
		kill(pid, SIGCONT);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static void a_jvm_may_touch_its_heap_before(void)
{
	unsigned long made = 0;
	pid_t daemon;
	int status;

	if (access(JVM, X_OK)) {
		say_verdict(true, __func__, "there is no " JVM);
		return;
	}
	daemon = start_daemon("--name", JAVA_NAME);
	status = run_with_stops(JVM, "@/jvm/touched", &made);
	kill_process(daemon);
	if (!status && made >= ENOUGH_PAGES)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "status %d, %lu pages made",
			    status, made);
}

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
		a_jvm_may_touch_its_heap_before();
	}
	end_small_pages(&sizes);
}
