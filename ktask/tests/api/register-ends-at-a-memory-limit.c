/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register in a memory cgroup that is too small and whose OOM killer is off: -ENOMEM
 * and the first byte for which there is no memory; nothing stays registered, and the
 * process lives.
 */
#include "ktest.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "device.h"

#define LEN (256 * MIB)
#define LIMIT "83886080" /* 80 MiB */
#define NO_GROUP 70

static char group[128];
static struct device device;

static bool put(const char *name, const char *value)
{
	char path[256];
	ssize_t len = (ssize_t)strlen(value);
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, value, (size_t)len) == len;
	close(fd);
	return done;
}

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
	/* Version 1 only: in version 2 the killer cannot be switched off. */
	if (!put("memory.limit_in_bytes", LIMIT) ||
	    !put("memory.oom_control", "1") || !put("cgroup.procs", "0"))
		return NO_GROUP;
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
	int status;

	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("a sanitizer needs memory of its own");
	snprintf(group, sizeof(group), "/sys/fs/cgroup/memory/ktask-reg-%d",
		 (int)getpid());
	if (mkdir(group, 0755))
		ktest_skip("no memory cgroup of version 1 may be made");
	status = ktest_in_child(within_the_limit, NULL);
	rmdir(group);
	if (status == NO_GROUP << 8)
		ktest_skip("the memory cgroup cannot be limited");
	assert_int_equal(status, 0);
}

KTEST_MAIN(KTEST(it_ends_with_an_error))
