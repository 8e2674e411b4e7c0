/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A device /dev/ktask for one process, behind syscall(2), which refuses what the
 * test wants and is as fast as it says.  Include in one file of a program, after
 * ktest.h.
 */
#ifndef TEST_FAKEDEVICE_H
#define TEST_FAKEDEVICE_H

#include <fcntl.h>
#include <sys/syscall.h>
#include <uapi/linux/ktask.h>

#include "failalloc.h"
#include "pages.h"
#include "syscalls.h"
#include "tree.h"
#include "user/limits/permits.h"
#include "util/file.h"

#define LARGE (64 * MIB)
#define FAKE_FD 1000000
#define SKIPPED 77
#define NO_LOCK 78

static struct {
	int open_error, probe_error;
	unsigned fail_at; /* the request with that number; 0: none */
	int fail_error;
	unsigned us_per_mib; /* how slow it is */
	uint32_t threads; /* that it says */

	unsigned nr_opened, nr_closed, nr_requests;
	uint32_t max_threads; /* of the last request */
	size_t bytes; /* of all */
} fake_device;

static inline long populate_request(struct ktask_mem *mem, size_t len)
{
	int advice = mem->flags & KTASK_MEM_WRITE ? MADV_POPULATE_WRITE
						  : MADV_POPULATE_READ;

	mem->threads = fake_device.threads;
	if (!len)
		return 0;
	if (!syscalls_pass(SYS_madvise, (const long[6]){ (long)mem->addr,
							 (long)len, advice }))
		return 0;
	return -EFAULT;
}

static inline long answer_request(struct ktask_mem *mem)
{
	ktest_check(mem->size == sizeof(*mem) && !mem->fd && !mem->threads);
	if (!mem->len)
		return -fake_device.probe_error;
	fake_device.nr_requests++;
	fake_device.bytes += mem->len;
	fake_device.max_threads = mem->max_threads;
	usleep((unsigned)(mem->len / MIB) * fake_device.us_per_mib);
	if (fake_device.nr_requests != fake_device.fail_at)
		return populate_request(mem, mem->len);
	populate_request(mem, mem->len / 2);
	return -fake_device.fail_error;
}

static inline bool answer_syscall(long number, const long args[6], long *result)
{
	if (number == SYS_openat && !strcmp((char *)args[1], "/dev/ktask")) {
		ktest_check(args[2] & O_CLOEXEC);
		fake_device.nr_opened += !fake_device.open_error;
		*result = fake_device.open_error ? -fake_device.open_error
						 : FAKE_FD;
		return true;
	}
	if (args[0] != FAKE_FD)
		return false;
	if (number == SYS_close) {
		fake_device.nr_closed++;
		*result = 0;
		return true;
	}
	if (number != SYS_ioctl)
		return false;
	ktest_check(args[1] == (long)KTASK_IOC_POPULATE);
	ktest_check(fake_device.nr_opened == fake_device.nr_closed + 1);
	*result = answer_request((struct ktask_mem *)args[2]);
	return true;
}

/* ---- what tests share ---- */

static inline unsigned threads_here(void)
{
	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
	unsigned nr = ktask_limits(limits, 32), least = 100;

	for (unsigned i = 0; i < nr && i < 32; i++)
		if (limits[i].threads < least)
			least = limits[i].threads;
	return least;
}

/* Helpers of other processes leave none to the device: the registry that counts them
 * cannot be mapped. */
static inline void be_alone(void)
{
	failalloc_arm_from(1, FAILALLOC_MMAP);
	ktest_check(!permits_running());
	failalloc_disarm();
	ktest_check(!permits_shared());
}

static int (*test_func)(void *arg);

static inline int run_alone(void *arg)
{
	be_alone();
	return test_func(arg);
}

/* A machine on which nothing else runs: without the right to lend priorities a job has
 * threads only for CPUs that idle, which real ones may not do any more at the next look. */
static inline void in_child(int (*func)(void *arg))
{
	struct tree machine;
	int status;

	tree_begin(&machine);
	tree_put_cpus(&machine);
	tree_put(&machine, "/proc/loadavg", "0.00 0.00 0.00 1/100 1234\n");
	file_root = machine.root;
	memset(&fake_device, 0, sizeof(fake_device));
	syscalls_answer = answer_syscall;
	test_func = func;
	status = ktest_in_child(run_alone, NULL);
	syscalls_answer = NULL;
	file_root = "";
	tree_end(&machine);
	unsetenv("KTASK_ENGINE");
	if (status == SKIPPED << 8)
		ktest_skip("a job has one thread here");
	if (status == NO_LOCK << 8)
		ktest_skip("no right to lock so much memory");
	assert_int_equal(status, 0);
}

static inline void must_have_two_threads(void)
{
	if (threads_here() < 2)
		_exit(SKIPPED);
}

static inline int run_populate(char *at, size_t len, struct ktask_opts *opts)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = at,
				      .len = len };

	return ktask_op_run(ktask_op_find("populate"), &args, opts);
}

static inline bool engine_is(const char *name)
{
	struct ktask_engine engine = KTASK_ENGINE_INIT;

	ktest_check(!ktask_op_engine(ktask_op_find("populate"), &engine));
	ktest_check(engine.why[0]);
	return !strcmp(engine.name, name);
}

/* A job as on a machine without the device, and nothing left open. */
static inline void populates_all(size_t len)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	char *at = map_private(len);

	opts.result = &result;
	ktest_check(run_populate(at, len, &opts) == 0);
	ktest_check(pages_present(at, len) == len / page_bytes());
	ktest_check(result.error == 0 && result.fail_error == 0);
	ktest_check(result.units == len && result.chunks > 0);
	ktest_check(result.fail_pos == NULL && result.wall_ns > 0);
	ktest_check(fake_device.nr_opened == fake_device.nr_closed);
	munmap(at, len);
}

#endif /* TEST_FAKEDEVICE_H */
