/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that closes all descriptors, the library's among them, loses what
 * the library told it, and no time.
 */
#include "support/subscribers.h"

#define NOT_HERE 77
#define IDLE_US 300000

static int closes_all(void *unused)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_PERF };
	uint64_t before_ns;
	struct umt *subscriber, *other;
	int fd;

	if (umt_open(&subscriber, &options))
		return NOT_HERE;
	ktest_check(umt_thread_add(subscriber) == 0);
	for (fd = 3; fd < 100; fd++)
		close(fd);
	/* It wakes who waits there, who finds that it is gone. */
	block_us(1000);
	before_ns = ktest_cpu_ns();
	block_us(IDLE_US);
	ktest_check(ktest_cpu_ns() - before_ns < IDLE_US * 1000 / 3);
	/* And it can have it anew. */
	ktest_check(umt_open(&other, &options) == 0);
	umt_close(other);
	return 0;
}

static void the_server_has_nothing_to_wait_for(void **state)
{
	int status;

	if (KTEST_TSAN)
		ktest_skip("a descriptor that is closed beside its subscriber");
	status = ktest_in_child(closes_all, NULL);
	if (status == NOT_HERE << 8)
		ktest_skip("no perf here");
	assert_int_equal(status, 0);
}

KTEST_MAIN(KTEST(the_server_has_nothing_to_wait_for))
