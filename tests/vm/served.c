/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktaskd serves programs that nobody has written for it: of a static runtime, into which
 * no shim can be put, and of a JVM, whose collector maps and fills the heap.
 *
 * Some wait for the daemon, and tell by their status whether they were served: those of
 * tests/vm/Served.pm.  The others know nothing of it.  They are stopped again and again until
 * the daemon has done what it does, and were served if they made fewer pages by faults of
 * their own than they touched.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "made_ahead.h"

#define TOUCHER "toucher"
#define JAVA_NAME "java"
#define JVM "/jvm/bin/java"
/* What it touches before its program begins, as tests/vm/link-jvm says. */
#define JVM_PAGES (192 * MIB / PAGE)

/* ---- programs that wait ---- */

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

/* ---- programs that are stopped ---- */

/* When it has grown by so much; and for how long, if the daemon makes nothing: four times
 * as long each time that the program is run again. */
#define STEP_PAGES (4 * MIB / PAGE)
#define HOLD_MS 200
#define STILL_MS 20
#define TRIES 3

struct unaware_program {
	const char *path; /* NULL: fill_memory() */
	const char *argument;
	long pages; /* that it touches, in order */
};

/* Of one run. */
struct run_result {
	int status;
	long faults;
};

/* What C programs do. */
static int fill_memory(void)
{
	volatile char *memory = malloc(TOUCH_LEN);

	if (!memory)
		return 9;
	memset((char *)memory, 1, TOUCH_LEN);
	for (size_t at = 0; at < TOUCH_LEN; at += PAGE / 2)
		if (memory[at] != 1)
			return 1;
	return 0;
}

static void use_cpus(size_t first, size_t end)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (size_t cpu = first; cpu < end; cpu++)
		CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void use_policy(int policy)
{
	struct sched_param param = { .sched_priority = policy != SCHED_OTHER };

	sched_setscheduler(0, policy, &param);
}

static pid_t start_unaware(const struct unaware_program *program)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	use_cpus(0, 1);
	if (!program->path) {
		prctl(PR_SET_NAME, "anybody");
		_exit(fill_memory());
	}
	execl(program->path, program->path, program->argument, (char *)NULL);
	_exit(127);
}

static unsigned long resident_pages(pid_t pid)
{
	char path[40], text[100];
	unsigned long all, resident = 0;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	read_file(path, text, sizeof(text));
	sscanf(text, "%lu %lu", &all, &resident);
	return resident;
}

/* Return: whether it has ended. */
static bool is_over(pid_t pid, int options, struct run_result *result)
{
	struct rusage usage;
	int status;

	if (wait4(pid, &status, options, &usage) != pid || WIFSTOPPED(status))
		return false;
	result->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
	result->faults = usage.ru_minflt;
	return true;
}

/* Return: how large it is when it has grown and grows no more, or after so long. */
static unsigned long await_growth(pid_t pid, long hold_ms)
{
	unsigned long first = resident_pages(pid), before, now = first;

	for (long ms = 0; ms < hold_ms; ms += STILL_MS) {
		before = now;
		sleep_ms(STILL_MS);
		now = resident_pages(pid);
		if (now > first && now == before)
			break;
	}
	return now;
}

static struct run_result run_with_stops(const struct unaware_program *program,
					long hold_ms)
{
	struct run_result result = { 0 };
	pid_t pid = start_unaware(program);
	unsigned long seen = 0;

	while (!is_over(pid, WNOHANG, &result)) {
		sleep_ms(1);
		if (resident_pages(pid) < seen + STEP_PAGES)
			continue;
		kill(pid, SIGSTOP);
		if (is_over(pid, WUNTRACED, &result))
			break;
		seen = await_growth(pid, hold_ms);
		kill(pid, SIGCONT);
	}
	return result;
}

/*
 * This process has the same CPU, and goes first there: when it gets none the program gets
 * none either, so the program cannot be ahead of its stops.  The daemon has the others.
 */
static void an_unaware_program_is_served(const char *test, const char *option,
					 const char *value,
					 const struct unaware_program *program)
{
	long most = program->pages - program->pages / 4;
	struct run_result result = { 0, program->pages };
	pid_t daemon;

	if (program->path && access(program->path, X_OK)) {
		say_verdict(true, test, "there is no %s", program->path);
		return;
	}
	daemon = start_daemon(option, value);
	use_cpus(0, 1);
	use_policy(SCHED_FIFO | SCHED_RESET_ON_FORK);
	for (int i = 0; i < TRIES && !result.status && result.faults > most;
	     i++) {
		result = run_with_stops(program, HOLD_MS << (2 * i));
		note_line("%ld of %ld pages by faults", result.faults,
			  program->pages);
	}
	use_policy(SCHED_OTHER);
	use_cpus(0, CPU_SETSIZE);
	kill(daemon, SIGTERM);
	status_of(daemon);
	if (!result.status && result.faults <= most) {
		say_verdict(true, test, NULL);
		return;
	}
	say_verdict(false, test, "status %d, %ld faults", result.status,
		    result.faults);
	note_daemon();
}

void test_served(void)
{
	static const struct unaware_program filler = {
		.pages = TOUCH_PAGES,
	};
	static const struct unaware_program jvm = {
		.path = JVM,
		.argument = "@/jvm/touched",
		.pages = JVM_PAGES,
	};
	struct page_sizes sizes;

	if (!is_daemon_here("programs-are-served"))
		return;
	if (begin_small_pages(&sizes)) {
		an_unaware_program_is_served("any-program-is-among-all",
					     "--all", NULL, &filler);
		a_program_is_served("a-static-golang-program-is-served",
				    TOUCHER, "/" TOUCHER, NULL);
		a_program_is_served("a-jvm-that-fills-its-heap-is-served",
				    JAVA_NAME, JVM, "@/jvm/filled");
		an_unaware_program_is_served(
			"a-jvm-that-touches-its-heap-before-is-served",
			"--name", JAVA_NAME, &jvm);
	}
	end_small_pages(&sizes);
}
