/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When all subscribers of a process have paused nothing of its program is attached, but
 * to the end of tasks; when one goes on it is, and threads that add themselves are counted
 * as ever.
 */
#include "support/subscribers.h"
#include "bpf_links.h"

#include <fcntl.h>
#include <sys/wait.h>

static uint64_t sum_blocked(struct umt *umt)
{
	uint64_t sum = 0;

	for (int cpu = 0; cpu < umt_nr_cores(umt); cpu++) {
		struct umt_counts counts;

		assert_int_equal(umt_core_counts(umt, cpu, &counts), 0);
		sum += counts.blocked;
	}
	return sum;
}

#define NAPS 20

/* As the kernel sees it; a wait that a signal prevents is none for UMT. */
static void sleep_often(void)
{
	(void)nap_often(100, 2 * NAPS, 100 * NAPS);
}

static struct umt *open_bpf(void)
{
	const struct umt_options options = { .size = sizeof(options),
					     .backend = UMT_BPF };
	struct umt *umt;

	if (umt_open(&umt, &options))
		ktest_skip("no program may be loaded");
	return umt;
}

static void nothing_is_attached(void **state)
{
	struct umt *one = open_bpf(), *other, *third;
	unsigned links;

	if (umt_pause(one) == -ENOTSUP) {
		umt_close(one);
		ktest_skip("umtd has the program");
	}
	assert_true(nr_bpf_links() <= LINKS_AT_REST);
	assert_int_equal(umt_pause(one), 0);
	assert_int_equal(umt_resume(one), 0);
	links = nr_bpf_links();
	assert_true(links > LINKS_AT_REST);
	other = open_bpf();
	assert_int_equal(umt_pause(one), 0);
	assert_int_equal(nr_bpf_links(), links);
	assert_int_equal(umt_pause(other), 0);
	assert_true(nr_bpf_links() <= LINKS_AT_REST);
	third = open_bpf();
	assert_int_equal(nr_bpf_links(), links);
	umt_close(third);
	assert_true(nr_bpf_links() <= LINKS_AT_REST);
	assert_int_equal(umt_resume(other), 0);
	assert_int_equal(nr_bpf_links(), links);
	umt_close(other);
	assert_true(nr_bpf_links() <= LINKS_AT_REST);
	umt_close(one);
	one = open_bpf();
	assert_int_equal(nr_bpf_links(), links);
	umt_close(one);
	assert_int_equal(nr_bpf_links(), 0);
}

static void counts_continue(void **state)
{
	struct umt *umt = open_bpf();

	if (umt_pause(umt) == -ENOTSUP) {
		umt_close(umt);
		ktest_skip("umtd has the program");
	}
	for (int round = 0; round < 10; round++) {
		uint64_t before;

		/* Whether it is added while it rests or not. */
		if (round % 2)
			assert_int_equal(umt_thread_add(umt), 0);
		sum_blocked(umt);
		sleep_often();
		assert_int_equal(sum_blocked(umt), 0);
		assert_int_equal(umt_resume(umt), 0);
		if (round % 2)
			assert_int_equal(umt_thread_remove(umt), 0);
		assert_int_equal(umt_thread_add(umt), 0);
		/* It may move to a core that was added up already. */
		assert_true(holds_soon(ready_of(umt) == 1));
		sum_blocked(umt);
		sleep_often();
		before = sum_blocked(umt);
		assert_true(before >= NAPS);
		assert_true(holds_soon(ready_of(umt) == 1));
		assert_int_equal(umt_thread_remove(umt), 0);
		assert_int_equal(ready_of(umt), 0);
		assert_int_equal(umt_pause(umt), 0);
	}
	umt_close(umt);
}

/* What has the numbers of its descriptors now is somebody else's. */
static int close_all_and_pause(void *arg)
{
	struct umt *umt = arg;
	int fds[64], nr = 0;

	if (umt_open(&umt, NULL) || umt_backend(umt) != UMT_BPF)
		return 77;
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	while (nr < 64 && (fds[nr] = open("/dev/null", O_RDONLY)) >= 0)
		nr++;
	if (!umt_pause(umt))
		return 1;
	while (nr--)
		if (fcntl(fds[nr], F_GETFD) < 0)
			return 2;
	_exit(0);
}

static void no_other_descriptor_is_closed(void **state)
{
	int status = ktest_in_child(close_all_and_pause, NULL);

	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		ktest_skip("no program may be loaded");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void others_cannot(void **state)
{
	const struct umt_options options = { .size = sizeof(options),
					     .backend = UMT_EXPLICIT };
	struct umt *umt;

	assert_int_equal(umt_open(&umt, &options), 0);
	assert_int_equal(umt_pause(umt), -ENOTSUP);
	assert_int_equal(umt_resume(umt), -ENOTSUP);
	umt_close(umt);
}

KTEST_MAIN(KTEST(nothing_is_attached), KTEST(counts_continue),
	   KTEST(no_other_descriptor_is_closed), KTEST(others_cannot))
