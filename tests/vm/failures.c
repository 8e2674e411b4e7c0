/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Allocations that fail: each one that a request or the loading of the module
 * makes, one after the other; and some of those that helpers make in chunks.
 *
 * In kernels that were built for it; others skip.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "failing.h"
#include "guest.h"

#define FAIL_NTH "/proc/thread-self/fail-nth"
/* Four chunks, of which helpers do some. */
#define FAIL_RANGE (8 * MIB)
/* For which helpers are made: ktask/kernel/client/device_populate.c. */
#define PROCESS_RANGE (16 * MIB)
/* Allocations of a request that are made to fail one by one; then, of pages, only
 * some. */
#define FAIL_EACH 80
#define FAIL_LOAD_MAX 5000
/* Rounds with 1, 4, 16 and 64 % of allocations that fail: a single page that is
 * not to be had at first is asked for again. */
#define FAIL_ROUNDS 8

static void fail_nth(unsigned nth)
{
	char text[20];

	snprintf(text, sizeof(text), "%u", nth);
	write_file(FAIL_NTH, text);
}

/* Return: whether there were as many allocations. */
static bool did_fail(void)
{
	char text[20];

	read_file(FAIL_NTH, text, sizeof(text));
	fail_nth(0);
	return atoi(text) == 0;
}

/* What a request does, and what must be so afterwards. */
struct failing {
	const char *name;
	unsigned long what;
	unsigned flags;
	int of;
	uint64_t addr;
	bool there; /* so are its pages, and so it cannot fail */
};

static bool may_say(int error)
{
	return !error || error == ENOMEM || error == EFAULT;
}

/* Return: NULL, or what is wrong. */
static const char *fail_once(int fd, const struct failing *f, char *addr)
{
	int error;

	if (f->flags & KTASK_MEM_FD)
		error = request_of(fd, f->what, f->of, f->addr, FAIL_RANGE,
				   f->flags & ~KTASK_MEM_FD, NULL);
	else
		error = do_request(fd, f->what, addr,
				   f->there ? PROCESS_RANGE : FAIL_RANGE,
				   f->flags, NULL);
	if (!may_say(error) || (error && f->there))
		return strerror(error);
	if (f->what != KTASK_IOC_PIN)
		return NULL;
	return do_request(fd, KTASK_IOC_UNPIN, addr, FAIL_RANGE, 0, NULL) ==
			       (error ? ENOENT : 0)
		       ? NULL
		       : "half pinned";
}

/* Return: tries, 0 when something was wrong (which was said). */
static unsigned fail_each(int fd, const struct failing *f, char *addr)
{
	unsigned nth, tries = 0;
	bool more = true;

	for (nth = 1; more; nth += nth > FAIL_EACH ? nth / 4 : 1) {
		const char *why;

		if (!f->there)
			madvise(addr, FAIL_RANGE, MADV_DONTNEED);
		fail_nth(nth);
		why = fail_once(fd, f, addr);
		more = did_fail();
		if (why) {
			say_verdict(false,
				    "a_failing_allocation_fails_one_request",
				    "%s, allocation %u: %s", f->name, nth, why);
			return 0;
		}
		tries++;
	}
	return tries;
}

static void a_failing_allocation_fails_one_request(void)
{
	bool can = can_fail();
	int fd = can ? open_device() : -1;
	int file = memfd_create("fail", MFD_CLOEXEC);
	int own = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	char *addr = map_memory(PROCESS_RANGE);
	const struct failing requests[] = {
		{ .name = "clear what is there",
		  .what = KTASK_IOC_CLEAR,
		  .there = true },
		{ .name = "populate",
		  .what = KTASK_IOC_POPULATE,
		  .flags = KTASK_MEM_WRITE },
		{ .name = "pin", .what = KTASK_IOC_PIN },
		{ .name = "clear", .what = KTASK_IOC_CLEAR },
		{ .name = "clear a file",
		  .what = KTASK_IOC_CLEAR,
		  .flags = KTASK_MEM_FD,
		  .of = file },
		{ .name = "populate another",
		  .what = KTASK_IOC_POPULATE,
		  .flags = KTASK_MEM_WRITE | KTASK_MEM_FD,
		  .of = own,
		  .addr = (uintptr_t)addr },
	};
	unsigned tries = 1;
	long before = count_pinned();

	if (!can) {
		close(file);
		close(own);
		say_verdict(true, __func__,
			    "this kernel lets no allocation fail");
		return;
	}
	CHECK(fd >= 0 && own >= 0 && addr && !ftruncate(file, FAIL_RANGE));
	memset(addr, 1, PROCESS_RANGE);
	for (unsigned i = 0; i < sizeof(requests) / sizeof(*requests) && tries;
	     i++)
		tries = fail_each(fd, &requests[i], addr);
	munmap(addr, PROCESS_RANGE);
	close(file);
	close(own);
	close(fd);
	if (!tries)
		return;
	CHECK(pins_become(before));
	CHECK(tries > 3);
	say_verdict(true, __func__, NULL);
}

/* ---- in helpers ---- */

struct outcomes {
	unsigned well, failed, wrong;
	int error; /* the last wrong one */
};

static void note_outcome(struct outcomes *outcomes, int error)
{
	if (!error)
		outcomes->well++;
	else if (may_say(error))
		outcomes->failed++;
	else
		outcomes->wrong++, outcomes->error = error;
}

/* Each request once; what was pinned can be unpinned. */
static void request_each(int fd, char *addr, struct outcomes *outcomes)
{
	int error;

	madvise(addr, PROCESS_RANGE, MADV_DONTNEED);
	note_outcome(outcomes,
		     do_request(fd, KTASK_IOC_POPULATE, addr, PROCESS_RANGE,
				KTASK_MEM_WRITE, NULL));
	note_outcome(outcomes, do_request(fd, KTASK_IOC_CLEAR, addr,
					  PROCESS_RANGE, 0, NULL));
	madvise(addr, PROCESS_RANGE, MADV_DONTNEED);
	error = do_request(fd, KTASK_IOC_PIN, addr, PROCESS_RANGE, 0, NULL);
	note_outcome(outcomes, error);
	if (do_request(fd, KTASK_IOC_UNPIN, addr, PROCESS_RANGE, 0, NULL) !=
	    (error ? ENOENT : 0)) {
		outcomes->wrong++;
		outcomes->error = EBUSY;
	}
}

static void failing_allocations_of_helpers_harm_nobody(void)
{
	struct outcomes *outcomes = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long before = count_pinned();
	int status = 0;

	if (!can_fail()) {
		say_verdict(true, __func__,
			    "this kernel lets no allocation fail");
		return;
	}
	for (int i = 0; i < FAIL_ROUNDS && !status; i++) {
		pid_t pid;

		begin_failing(1u << i / 2 * 2);
		pid = fork();
		if (pid == 0) {
			int fd = open_device();
			char *addr = map_memory(PROCESS_RANGE);

			let_fail("self", i % 2);
			request_each(fd, addr, outcomes);
			_exit(0);
		}
		status = status_of(pid);
		end_failing();
	}
	note_line(
		"failing allocations of helpers: %u requests did well, %u failed",
		outcomes->well, outcomes->failed);
	CHECK(!status);
	CHECK(pins_become(before));
	if (outcomes->wrong)
		say_verdict(false, __func__, "%u are wrong, the last one: %s",
			    outcomes->wrong, strerror(outcomes->error));
	else if (!outcomes->failed)
		say_verdict(false, __func__, "nothing failed");
	else
		say_verdict(true, __func__, NULL);
	munmap(outcomes, PAGE);
}

/* ---- where helpers are made ---- */

/* Tries to make some, of which the first fail. */
#define MAKE_ROUNDS 20

/* Return: whether some were missing; what is unbound may run in a thread of the
 * kernel's that is new since it was let fail. */
static bool fail_to_make_helpers(unsigned percent, unsigned wanted)
{
	bool missing;

	set_failing("probability", percent);
	let_threads_fail("kworker/", true);
	set_parameter("cap_percent", "80");
	set_parameter("keep", "0");
	sleep_ms(200);
	missing = nr_helpers() < wanted;
	set_failing("probability", 0);
	let_threads_fail("kworker/", false);
	return missing;
}

/* Jobs do without them meanwhile. */
static void helpers_that_cannot_be_made_are_made_later(void)
{
	unsigned limit = (unsigned)stat_of("helpers_limit"), missing = 0;
	unsigned wanted = limit < 3 ? limit : 3, then = wanted;
	int error = 0;

	if (!can_fail() || !limit) {
		say_verdict(true, __func__, "one CPU, or nothing can fail");
		return;
	}
	set_failing("task-filter", 1);
	set_failing("times", -1u);
	set_parameter("idle_ms", "1");
	for (int i = 0; i < MAKE_ROUNDS && !error && then == wanted; i++) {
		set_parameter("cap_percent", "0");
		set_parameter("keep", "1");
		if (await_helpers(0, 0))
			error = EBUSY;
		missing += fail_to_make_helpers(i % 2 ? 30 : 100, wanted);
		if (!error)
			error = run_in_kernel("+short-job");
		set_parameter("keep", "0");
		then = await_helpers(wanted, -1u) >= wanted ? wanted : 0;
	}
	set_parameter("idle_ms", "5000");
	set_failing("task-filter", 0);
	note_line("%u of %u times some helpers could not be made", missing,
		  MAKE_ROUNDS);
	if (!error && then == wanted && missing)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%s, %u missing, then %u of %u",
			    strerror(error), missing, then, wanted);
}

/* ---- in starting a job ---- */

static int start_job(int run)
{
	return write(run, "+start-may-fail", 15) < 0 ? errno : 0;
}

/* All of its allocations fail. */
static int start_without_memory(int run)
{
	pid_t pid;
	int status;

	set_failing("task-filter", 1);
	set_failing("times", -1u);
	set_failing("probability", 100);
	pid = fork();
	if (pid == 0) {
		let_fail("self", true);
		_exit(start_job(run));
	}
	status = status_of(pid);
	set_failing("probability", 0);
	set_failing("task-filter", 0);
	return status;
}

static void a_job_is_started_whole_or_not_at_all(void)
{
	int run = open(DIR_TESTS "/run", O_WRONLY | O_CLOEXEC);
	unsigned nth, well = 0;
	bool more = can_fail();
	int error = 0;

	if (!more) {
		close(run);
		say_verdict(true, __func__,
			    "this kernel lets no allocation fail");
		return;
	}
	CHECK(run >= 0);
	for (nth = 1; more && nth < FAIL_LOAD_MAX; nth++) {
		fail_nth(nth);
		error = start_job(run);
		more = did_fail();
		if (error && error != ENOMEM)
			break;
		well += !error;
	}
	CHECK(!more && !error && well);
	CHECK(start_without_memory(run) == ENOMEM);
	close(run);
	say_verdict(true, __func__, NULL);
}

/* ---- in loading ---- */

static void the_module_loads_or_it_does_not(void)
{
	unsigned nth, failed = 0;
	bool more = true;
	int error = 0;

	if (!can_fail()) {
		say_verdict(true, __func__,
			    "this kernel lets no allocation fail");
		return;
	}
	CHECK(!unload_module("ktask_test") && !unload_module("ktask"));
	for (nth = 1; more && nth < FAIL_LOAD_MAX; nth++) {
		fail_nth(nth);
		error = load_module("/ktask.ko", "");
		more = did_fail();
		if (error)
			failed++;
		/* Loaded without what could be left out. */
		if (!error && unload_module("ktask"))
			break;
	}
	CHECK(!more && !error && failed > 20);
	CHECK(load_both());
	say_verdict(true, __func__, NULL);
}

void test_failures(void)
{
	a_failing_allocation_fails_one_request();
	failing_allocations_of_helpers_harm_nobody();
	helpers_that_cannot_be_made_are_made_later();
	a_job_is_started_whole_or_not_at_all();
	the_module_loads_or_it_does_not();
}
