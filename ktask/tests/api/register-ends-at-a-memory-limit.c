/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register in a memory cgroup that is too small and whose OOM killer is off: -ENOMEM
 * and the first byte for which there is no memory; nothing stays registered, and the
 * process lives.
 */
#include "ktest.h"

#include "device.h"
#include "memory_group.h"

#define LEN (256 * MIB)
#define LIMIT "83886080" /* 80 MiB */

static struct device device;

static int attempt_to_register(char *at, struct ktask_result *result)
{
	struct ktask_registration *registration;
	struct ktask_register_ctl ctl;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	int error;

	device_init(&device);
	ctl = device_ctl(&device, 0);
	opts.result = result;
	error = ktask_register(&registration, at, LEN, &ctl, &opts);
	if (!error)
		ktask_unregister(&registration, NULL);
	return error;
}

/* As in ops-a-memory-limit-is-an-error.c: who faults at the limit sleeps for ever, so
 * all that will run runs once before, fails once, and is locked. */
static void make_all_present(void)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	volatile char stack[128 * 1024];
	char *at = map_private(LEN);

	for (size_t i = 0; i < sizeof(stack); i += 4096)
		stack[i] = 1;
	memset(&device, 1, sizeof(device));
	ktest_check(attempt_to_register(at, &result) == 0);
	/* A range that is there is not looked through. */
	madvise(at, LEN, MADV_DONTNEED);
	munmap(at + LEN / 2, LEN / 2);
	ktest_check(attempt_to_register(at, &result) == -ENOMEM);
	munmap(at, LEN / 2);
	ktest_check(!mlockall(MCL_CURRENT));
}

static int within_the_limit(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at;

	make_all_present();
	at = map_private(LEN);
	if (!memory_group_enter(LIMIT))
		return NO_MEMORY_GROUP;
	ktest_check(attempt_to_register(at, &result) == -ENOMEM);
	ktest_check(result.fail_error == -ENOMEM);
	ktest_check(result.fail_offset % page_bytes() == 0);
	ktest_check(result.fail_offset > 8 * MIB);
	ktest_check(result.fail_offset < LEN);
	/* Some had been registered, and all of that was taken back. */
	ktest_check(device.takes > 0);
	ktest_check(device.nr == 0 && device.wrong == 0);
	munmap(at, LEN);
	return 0;
}

static void it_ends_with_an_error(void **state)
{
	memory_group_test(within_the_limit, NULL);
}

KTEST_MAIN(KTEST(it_ends_with_an_error))
