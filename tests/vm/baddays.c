/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Bad days: allocations that fail, a machine that is suspended, memory that goes
 * away, while /dev/ktask works.
 *
 * What a kernel cannot do to itself (only one that was built for it can) is
 * skipped there.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

#define FAIL_NTH "/proc/thread-self/fail-nth"
/* Four chunks, of which helpers do some. */
#define FAIL_RANGE (8 * MIB)
/* Allocations of a request that are made to fail one by one; then, of pages, only
 * some. */
#define FAIL_EACH 80
#define FAIL_LOAD_MAX 5000
#define BLOCK_SECONDS 3

/* ---- allocations that fail ---- */

static bool can_fail(void)
{
	static const char *const settings[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
	};
	char path[100];

	for (unsigned i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s",
			 settings[i][0]);
		if (write_file(path, settings[i][1]))
			return false;
	}
	return true;
}

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
		error = request(fd, f->what, addr, FAIL_RANGE, f->flags, NULL);
	if (!may_say(error))
		return strerror(error);
	if (f->what != KTASK_IOC_PIN)
		return NULL;
	return request(fd, KTASK_IOC_UNPIN, addr, FAIL_RANGE, 0, NULL) ==
			       (error ? ENOENT : 0)
		       ? NULL
		       : "half pinned";
}

/* Return: tries, 0 when something was wrong (which was said). */
static unsigned fail_each(int fd, const struct failing *f, char *addr)
{
	unsigned nth, tries = 0;
	bool more = true;

	for (nth = 1; more; nth += nth > FAIL_EACH ? nth / 8 : 1) {
		const char *why;

		madvise(addr, FAIL_RANGE, MADV_DONTNEED);
		fail_nth(nth);
		why = fail_once(fd, f, addr);
		more = did_fail();
		if (why) {
			say(false, "a_failing_allocation_fails_one_request",
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
	int fd = can ? device() : -1;
	int file = memfd_create("fail", MFD_CLOEXEC);
	int own = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	char *addr = map(FAIL_RANGE);
	const struct failing requests[] = {
		{ "populate", KTASK_IOC_POPULATE, KTASK_MEM_WRITE, 0, 0 },
		{ "pin", KTASK_IOC_PIN, 0, 0, 0 },
		{ "clear", KTASK_IOC_CLEAR, 0, 0, 0 },
		{ "clear a file", KTASK_IOC_CLEAR, KTASK_MEM_FD, file, 0 },
		{ "populate another", KTASK_IOC_POPULATE,
		  KTASK_MEM_WRITE | KTASK_MEM_FD, own, (uintptr_t)addr },
	};
	unsigned tries = 1;
	long before = pinned();

	if (!can) {
		close(file);
		close(own);
		say(true, __func__, "this kernel lets no allocation fail");
		return;
	}
	CHECK(fd >= 0 && own >= 0 && addr && !ftruncate(file, FAIL_RANGE));
	for (unsigned i = 0; i < sizeof(requests) / sizeof(*requests) && tries;
	     i++)
		tries = fail_each(fd, &requests[i], addr);
	munmap(addr, FAIL_RANGE);
	close(file);
	close(own);
	close(fd);
	if (!tries)
		return;
	CHECK(pins_become(before));
	CHECK(tries > 3);
	say(true, __func__, NULL);
}

static void the_module_loads_or_it_does_not(void)
{
	unsigned nth, failed = 0;
	bool more = true;
	int error = 0;

	if (!can_fail()) {
		say(true, __func__, "this kernel lets no allocation fail");
		return;
	}
	CHECK(!unload("ktask_test") && !unload("ktask"));
	for (nth = 1; more && nth < FAIL_LOAD_MAX; nth++) {
		fail_nth(nth);
		error = load("/ktask.ko", "");
		more = did_fail();
		if (error)
			failed++;
		/* Loaded without what could be left out. */
		if (!error && unload("ktask"))
			break;
	}
	CHECK(!more && !error && failed > 20);
	CHECK(load_both());
	say(true, __func__, NULL);
}

/* ---- a machine that is suspended ---- */

/* Zero pages: long, and little memory. */
static void populate_for_long(void)
{
	int fd = device();
	size_t len = 8ul << 30;
	char *addr = mmap(NULL, len, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	madvise(addr, len, MADV_NOHUGEPAGE);
	for (;;) {
		request(fd, KTASK_IOC_POPULATE, addr, len, 0, NULL);
		madvise(addr, len, MADV_DONTNEED);
	}
}

static void a_suspended_machine_goes_on(void)
{
	const char *test = "/sys/power/pm_test";
	int frozen = 0, i;
	pid_t pid;

	if (write_file(test, "freezer")) {
		say(true, __func__, "this kernel cannot test suspending");
		return;
	}
	write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
	pid = fork();
	if (pid == 0)
		populate_for_long();
	for (i = 0; i < 3 && !frozen; i++) {
		sleep_ms(200);
		frozen = write_file("/sys/power/state", "freeze");
	}
	write_file(test, "none");
	CHECK(waitpid(pid, NULL, WNOHANG) == 0);
	kill(pid, SIGKILL);
	CHECK(status_of(pid) == 1000);
	if (frozen)
		say(false, __func__, "round %d: %s", i, strerror(frozen));
	else
		say(true, __func__, NULL);
}

/* ---- memory that goes away ---- */

static int set_block(const char *name, const char *state)
{
	char path[300];

	snprintf(path, sizeof(path), "/sys/devices/system/memory/%s/state",
		 name);
	return write_file(path, state);
}

static void hurry(int unused)
{
	(void)unused;
}

/* The kernel tries until it has moved everything, or a signal comes. */
static int take_block(const char *name)
{
	struct sigaction action = { .sa_handler = hurry };
	int error;

	sigaction(SIGALRM, &action, NULL);
	alarm(BLOCK_SECONDS);
	error = set_block(name, "offline");
	alarm(0);
	return error;
}

/* Each block of memory once.  Return: how many were away. */
static unsigned move_blocks(int *error)
{
	DIR *dir = opendir("/sys/devices/system/memory");
	struct dirent *entry;
	unsigned moved = 0;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "memory", 6) ||
		    take_block(entry->d_name))
			continue;
		moved++;
		sleep_ms(10);
		*error = set_block(entry->d_name, "online");
	}
	if (dir)
		closedir(dir);
	return moved;
}

static void memory_may_go_while_it_is_used(void)
{
	pid_t pid = fork();
	unsigned moved = 0;
	int error = 0, i;

	if (pid == 0) {
		int fd = device();
		char *addr = map(RANGE);

		for (;;) {
			request(fd, KTASK_IOC_POPULATE, addr, RANGE,
				KTASK_MEM_WRITE, NULL);
			madvise(addr, RANGE, MADV_DONTNEED);
		}
	}
	for (i = 0; i < 2 && !error; i++)
		moved += move_blocks(&error);
	CHECK(waitpid(pid, NULL, WNOHANG) == 0);
	kill(pid, SIGKILL);
	CHECK(status_of(pid) == 1000);
	if (error)
		say(false, __func__, "%s", strerror(error));
	else if (!moved)
		say(true, __func__, "no memory can be taken away here");
	else
		say(true, __func__, NULL);
}

void test_bad_days(void)
{
	a_failing_allocation_fails_one_request();
	the_module_loads_or_it_does_not();
	a_suspended_machine_goes_on();
	memory_may_go_while_it_is_used();
}
