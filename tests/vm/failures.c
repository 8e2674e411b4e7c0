/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Allocations that fail: each one that a request or the loading of the module
 * makes, one after the other.
 *
 * In kernels that were built for it; others skip.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

#define FAIL_NTH "/proc/thread-self/fail-nth"
/* Four chunks, of which helpers do some. */
#define FAIL_RANGE (8 * MIB)
/* For which helpers are made: kmod/populate.c. */
#define WORKERS_RANGE (16 * MIB)
/* Allocations of a request that are made to fail one by one; then, of pages, only
 * some. */
#define FAIL_EACH 80
#define FAIL_LOAD_MAX 5000

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
		error = request(fd, f->what, addr,
				f->there ? WORKERS_RANGE : FAIL_RANGE, f->flags,
				NULL);
	if (!may_say(error) || (error && f->there))
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

	for (nth = 1; more; nth += nth > FAIL_EACH ? nth / 4 : 1) {
		const char *why;

		if (!f->there)
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
	char *addr = map(WORKERS_RANGE);
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
	long before = pinned();

	if (!can) {
		close(file);
		close(own);
		say(true, __func__, "this kernel lets no allocation fail");
		return;
	}
	CHECK(fd >= 0 && own >= 0 && addr && !ftruncate(file, FAIL_RANGE));
	memset(addr, 1, WORKERS_RANGE);
	for (unsigned i = 0; i < sizeof(requests) / sizeof(*requests) && tries;
	     i++)
		tries = fail_each(fd, &requests[i], addr);
	munmap(addr, WORKERS_RANGE);
	close(file);
	close(own);
	close(fd);
	if (!tries)
		return;
	CHECK(pins_become(before));
	CHECK(tries > 3);
	say(true, __func__, NULL);
}

/* ---- in loading ---- */

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

void test_failures(void)
{
	a_failing_allocation_fails_one_request();
	the_module_loads_or_it_does_not();
}
