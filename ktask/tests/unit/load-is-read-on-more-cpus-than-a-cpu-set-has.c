/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many threads run is read on a machine of more CPUs than a cpu_set_t has: the kernel
 * refuses a mask that is too small for all of them.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "ktest.h"

#include "util/cpus.h"
#include "util/file.h"

static unsigned pretended_cpus;
static const char *pretended_load;

/* As the kernel's sched_getaffinity(), for a thread that may run anywhere. */
static long pretended_syscall(long number, int tid, size_t size, void *to)
{
	size_t bytes = (pretended_cpus + 63) / 64 * 8;

	assert_int_equal(number, SYS_sched_getaffinity);
	if (size < bytes) {
		errno = EINVAL;
		return -1;
	}
	memset(to, 0xff, pretended_cpus / 8);
	return (long)bytes;
}

/* What has a cpu_set_t is refused; nobody should ask. */
static __attribute__((unused)) int refuse_affinity(pid_t tid, size_t size,
						   cpu_set_t *cpus)
{
	errno = EINVAL;
	return -1;
}

/* The one file that is read. */
static long pretended_text(const char *path, char *to, size_t size)
{
	assert_string_equal(path, "/proc/loadavg");
	snprintf(to, size, "%s", pretended_load);
	return (long)strlen(to);
}

static bool pretended_affinity(struct kt_cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	return pretended_syscall(SYS_sched_getaffinity, 0, sizeof(*cpus),
				 cpus) > 0;
}

#define file_text pretended_text
#define cpus_get_affinity pretended_affinity
#define sched_getaffinity refuse_affinity
#include "util/running_threads.h"
#undef sched_getaffinity
#undef cpus_get_affinity
#undef file_text

static void many_cpus_have_many_threads(void **unused)
{
	struct machine_load load;

	pretended_cpus = 2048;
	pretended_load = "900.12 800.00 99999.99 2047/4194303 4194304\n";
	assert_true(machine_load_read(&load));
	assert_int_equal(load.running, 2047);
	assert_int_equal(load.threads, 4194303);
	assert_int_equal(load.nr_cpus, 2048);
	assert_false(cpus_are_busy());
	pretended_load = "900.12 800.00 99999.99 2049/4194303 4194304\n";
	assert_true(cpus_are_busy());
}

static void few_cpus_are_read_as_well(void **unused)
{
	struct machine_load load;

	pretended_cpus = 8;
	pretended_load = "0.00 0.01 0.05 9/120 77\n";
	assert_true(machine_load_read(&load));
	assert_int_equal(load.nr_cpus, 8);
	assert_true(cpus_are_busy());
}

static void what_cannot_be_read_is_no_load(void **unused)
{
	struct machine_load load;

	pretended_cpus = KT_CPUS_MAX + 64;
	pretended_load = "0.00 0.01 0.05 9/120 77\n";
	assert_false(machine_load_read(&load));
	assert_false(cpus_are_busy());
	pretended_cpus = 8;
	pretended_load = "nothing of the kind";
	assert_false(machine_load_read(&load));
}

KTEST_MAIN(KTEST(many_cpus_have_many_threads), KTEST(few_cpus_are_read_as_well),
	   KTEST(what_cannot_be_read_is_no_load))
