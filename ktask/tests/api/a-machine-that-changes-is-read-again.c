/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A CPU that goes while the machine is read, between the look whether it is
 * another one and its reading: what was read is not kept as what was there.
 */
#include "topology.h"

#include <stdarg.h>
#include <sys/syscall.h>

#include "user/machine/topo.h"

#define ONLINE "/sys/devices/system/cpu/online"

static struct tree tree;
static int countdown; /* openings of the list until it changes; 0: never */
static const char *next;

static bool is_list(const char *path)
{
	size_t len = strlen(path), tail = strlen(ONLINE);

	return len >= tail && !strcmp(path + len - tail, ONLINE);
}

/* The library is linked statically: its openings pass here. */
int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	if (is_list(path) && countdown && !--countdown)
		tree_put(&tree, ONLINE, next);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* The list as it is now, with a change when it is opened the n-th time. */
static void arm_change(const char *now, int n, const char *then)
{
	countdown = 0;
	tree_put(&tree, ONLINE, now);
	next = then;
	countdown = n;
}

static unsigned refresh_cpus(void)
{
	static uint64_t now_ns = 1;

	now_ns += 2 * TOPO_REFRESH_NS;
	topo_refresh(now_ns);
	return topo_get()->nr_cpus;
}

static void a_machine_that_changes_is_read_again(void **state)
{
	topology_begin(&tree, "four-threads");
	/* The first reading: the mark opens the list, the reading does. */
	arm_change("0-7\n", 2, "0-5\n");
	topo_get();
	assert_int_equal(countdown, 0);
	arm_change("0-7\n", 0, NULL);
	refresh_cpus();
	assert_int_equal(refresh_cpus(), 8);
	/* And a later one. */
	arm_change("0-6\n", 2, "0-4\n");
	refresh_cpus();
	assert_int_equal(countdown, 0);
	arm_change("0-6\n", 0, NULL);
	assert_int_equal(refresh_cpus(), 7);
	arm_change("0-4\n", 0, NULL);
	assert_int_equal(refresh_cpus(), 5);
	topology_end(&tree);
}

KTEST_MAIN(KTEST(a_machine_that_changes_is_read_again))
