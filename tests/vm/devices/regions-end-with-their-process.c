/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A process that has memory registered with an RDMA device forks, and is killed, while
 * it registers and after that: a child has nothing to take back, its parent keeps its
 * pages, and of a dead process nothing is left in the kernel.
 */
#include <errno.h>
#include <ktask/register.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counts.h"
#include "verbs.h"

#define NR_REGIONS 12
#define MR_BYTES (2 * MIB)
#define LEN (NR_REGIONS * MR_BYTES)

static struct ibv_mr *regions[NR_REGIONS];
static struct ktask_verbs verbs;
static struct ktask_register_ctl ctl;
static struct ktask_registration *registration;

static void prepare_ctl(char *at)
{
	verbs = (struct ktask_verbs)KTASK_VERBS_INIT;
	verbs.pd = verbs_open();
	verbs.access = VERBS_LOCAL_WRITE;
	verbs.addr = at;
	verbs.mr_bytes = MR_BYTES;
	verbs.mrs = regions;
	verbs.nr_mrs = NR_REGIONS;
	ctl = (struct ktask_register_ctl)KTASK_REGISTER_CTL_INIT;
	ktest_check(ktask_register_verbs(&ctl, &verbs) == 0);
}

static long nr_regions(void)
{
	return verbs_count("mr");
}

static long nr_contexts(void)
{
	return verbs_count("ctx");
}

static long nr_module_users(void)
{
	FILE *in = fopen("/sys/module/rdma_rxe/refcnt", "r");
	long nr = -1;

	assert_non_null(in);
	assert_int_equal(fscanf(in, "%ld", &nr), 1);
	fclose(in);
	return nr;
}

static int forget_in_child(void *arg)
{
	(void)arg;
	ktest_check(ktask_unregister(&registration, NULL) == 0);
	ktest_check(!registration);
	return 0;
}

/* Pages that a device knows by their physical address must not be copied. */
static void a_fork_leaves_the_parents_pages_alone(void **state)
{
	char *at = map_absent(LEN);
	uint64_t frames[LEN / PAGE];

	(void)state;
	prepare_ctl(at);
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, NULL), 0);
	for (size_t i = 0; i < LEN / PAGE; i++)
		frames[i] = counts_frame(at + i * PAGE);
	assert_int_equal(ktest_in_child(forget_in_child, NULL), 0);
	assert_int_equal(nr_regions(), NR_REGIONS);
	assert_int_equal(counts_of_status(0, "VmPin:"), LEN / 1024);
	memset(at, 3, LEN);
	for (size_t i = 0; i < LEN / PAGE; i++)
		assert_true(frames[i] &&
			    frames[i] == counts_frame(at + i * PAGE));
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_int_equal(nr_regions(), 0);
	assert_int_equal(counts_of_status(0, "VmPin:"), 0);
	verbs_close(verbs.pd);
	munmap(at, LEN);
}

static void hold_all(void *arg)
{
	(void)arg;
	prepare_ctl(map_absent(LEN));
	if (ktask_register(&registration, verbs.addr, LEN, &ctl, NULL) == 0)
		tell_parent();
	for (;;)
		pause();
}

static ktask_register_func add_region;
static _Atomic unsigned nr_added;

static unsigned stop_after;

/* Another thread may be between two pages meanwhile. */
static int add_until_told(void *start, void *end, void *arg)
{
	int error = add_region(start, end, arg);

	if (nr_added++ == stop_after) {
		tell_parent();
		for (;;)
			pause();
	}
	return error;
}

static void hold_some(void *arg)
{
	prepare_ctl(map_absent(LEN));
	stop_after = *(unsigned *)arg;
	add_region = ctl.register_func;
	ctl.register_func = add_until_told;
	ktask_register(&registration, verbs.addr, LEN, &ctl, NULL);
}

static void kill_and_check(void (*hold)(void *arg), void *arg, long least)
{
	long users = nr_module_users(), pinned = counts_pinned();
	pid_t pid = hold_in_child(hold, arg);

	assert_true(nr_regions() >= least);
	assert_true(counts_of_status(pid, "VmPin:") >=
		    least * (long)(MR_BYTES / 1024));
	kill_child(pid);
	assert_true(counts_return_to(nr_regions, 0));
	assert_true(counts_return_to(nr_contexts, 0));
	assert_true(counts_return_to(nr_module_users, users));
	assert_true(counts_return_to(counts_pinned, pinned));
}

static void a_killed_process_leaves_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		kill_and_check(hold_all, NULL, NR_REGIONS);
}

static void a_process_killed_in_the_middle_leaves_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NR_REGIONS; i += 3)
		kill_and_check(hold_some, &i, i + 1);
}

KTEST_MAIN(KTEST(a_fork_leaves_the_parents_pages_alone),
	   KTEST(a_killed_process_leaves_nothing),
	   KTEST(a_process_killed_in_the_middle_leaves_nothing))
