/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register in a memory cgroup that is too small and whose OOM killer is off: -ENOMEM
 * and the first byte for which there is no memory; nothing stays registered, and the
 * process lives.  Pages are made ahead of the device's calls, by each of them that are
 * made at once, or by the device itself: one that is made up, and an io_uring.
 */
#include "ktest.h"

#include <sys/mman.h>

#include "device.h"
#include "memory_group.h"
#include "uring.h"

#define LEN (256 * MIB)
/* 160 MiB: behind the first half, which is made at once. */
#define LIMIT "167772160"
#define UNIT (2 * MIB)

/* What is registered with. */
struct way {
	unsigned flags;
	bool is_uring;
};

static struct device device;
static struct uring ring;

/* As a device that pins. */
static int make_pages(struct device *any, char *start, char *end)
{
	return madvise(start, (size_t)(end - start), MADV_POPULATE_WRITE)
		       ? -errno
		       : 0;
}

static struct ktask_uring_buffers buffers_at(char *at)
{
	struct ktask_uring_buffers buffers = KTASK_URING_BUFFERS_INIT;

	buffers.ring_fd = ring.fd;
	buffers.addr = at;
	buffers.slot_bytes = UNIT;
	return buffers;
}

static int prepare_ctl(const struct way *way, struct ktask_register_ctl *ctl,
		       struct ktask_uring_buffers *buffers)
{
	if (way->is_uring) {
		*ctl = (struct ktask_register_ctl)KTASK_REGISTER_CTL_INIT;
		return ktask_register_uring(ctl, buffers);
	}
	device_init(&device);
	device.any_order = way->flags;
	if (way->flags & KTASK_REGISTER_MAKES_PAGES)
		device.before = make_pages;
	*ctl = device_ctl(&device, way->flags);
	if (way->flags)
		ctl->unit_bytes = UNIT;
	return 0;
}

static int attempt_to_register(const struct way *way, char *at,
			       struct ktask_result *result)
{
	struct ktask_registration *registration;
	struct ktask_register_ctl ctl;
	struct ktask_uring_buffers buffers = buffers_at(at);
	struct ktask_opts opts = KTASK_OPTS_INIT;
	int error = prepare_ctl(way, &ctl, &buffers);

	ktest_check(!error);
	opts.result = result;
	error = ktask_register(&registration, at, LEN, &ctl, &opts);
	if (!error)
		ktest_check(!ktask_unregister(&registration, NULL));
	return error;
}

static char *map_small_pages(void)
{
	char *at = map_private(LEN);

	madvise(at, LEN, MADV_NOHUGEPAGE);
	return at;
}

/* As in ops-a-memory-limit-is-an-error.c: who faults at the limit sleeps for ever, so
 * all that will run runs once before, fails once, and is locked. */
static void make_all_present(const struct way *way)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	volatile char stack[128 * 1024];
	char *at = map_small_pages();

	for (size_t i = 0; i < sizeof(stack); i += 4096)
		stack[i] = 1;
	memset(&device, 1, sizeof(device));
	ktest_check(attempt_to_register(way, at, &result) == 0);
	/* A range that is there is not looked through. */
	madvise(at, LEN, MADV_DONTNEED);
	munmap(at + LEN / 2, LEN / 2);
	ktest_check(attempt_to_register(way, at, &result) < 0);
	munmap(at, LEN / 2);
	ktest_check(!mlockall(MCL_CURRENT));
}

/* Some pieces had been registered, and all of them were taken back. */
static void check_device(const struct way *way)
{
	if (way->is_uring)
		return;
	ktest_check(device.takes > 0);
	ktest_check(device.nr == 0 && device.wrong == 0);
}

/* A slot that is empty refuses what is read into it. */
static void check_slots(const struct way *way, char *at)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (unsigned slot = 0; way->is_uring && slot < LEN / UNIT; slot++)
		ktest_check(uring_read(&ring, fd, at + slot * UNIT, 1, slot) ==
			    -EFAULT);
	close(fd);
}

static bool is_present(char *at)
{
	unsigned char there = 0;

	ktest_check(!mincore(at, page_bytes(), &there));
	return there & 1;
}

/* What a ring gives back when it is closed may make room for the page that could not be
 * made: then the device's own error is told, which is EFAULT, and the piece. */
static int within_the_limit(void *arg)
{
	const struct way *way = arg;
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at;
	int error;

	ktest_check(!way->is_uring || uring_open(&ring, LEN / UNIT));
	make_all_present(way);
	at = map_small_pages();
	if (!memory_group_enter(LIMIT))
		return NO_MEMORY_GROUP;
	error = attempt_to_register(way, at, &result);
	ktest_check(error == -ENOMEM || (way->is_uring && error == -EFAULT));
	ktest_check(result.fail_error == error);
	ktest_check(result.fail_offset % page_bytes() == 0);
	ktest_check(result.fail_offset < LEN);
	/* Where several make pages one may be late with a low one. */
	ktest_check(way->flags || way->is_uring ||
		    result.fail_offset > 8 * MIB);
	check_device(way);
	ktest_check(way->is_uring || !is_present(at + result.fail_offset));
	madvise(at, LEN, MADV_DONTNEED);
	check_slots(way, at);
	munmap(at, LEN);
	return 0;
}

static void end_with_an_error(unsigned flags, bool is_uring)
{
	struct way way = { flags, is_uring };

	memory_group_test(within_the_limit, &way);
}

static void it_ends_with_an_error(void **state)
{
	end_with_an_error(0, false);
}

static void several_at_once_end_with_an_error(void **state)
{
	end_with_an_error(KTASK_REGISTER_PARALLEL, false);
}

static void a_device_that_makes_pages_ends_with_an_error(void **state)
{
	end_with_an_error(KTASK_REGISTER_PARALLEL | KTASK_REGISTER_MAKES_PAGES,
			  false);
}

static void an_io_uring_ends_with_an_error(void **state)
{
	if (!uring_open(&ring, 1))
		ktest_skip("no io_uring is to be had: %s", strerror(errno));
	uring_close(&ring);
	end_with_an_error(0, true);
}

KTEST_MAIN(KTEST(it_ends_with_an_error),
	   KTEST(several_at_once_end_with_an_error),
	   KTEST(a_device_that_makes_pages_ends_with_an_error),
	   KTEST(an_io_uring_ends_with_an_error))
