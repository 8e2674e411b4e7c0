/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A map that is bound to umtd's program is kept with that, by nobody's
 * descriptor: who does it is served no more, and everybody else as before.
 */
#include "support/umtd.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

#include "ebpf/shared.h"

#define OTHER 65533u
#define NOT_BOUND 2

static struct umtd umtd;

/* Return: how many descriptors came, or -errno. */
static int open_plainly(int *connection, int *fds)
{
	const struct umt_ask asked = { .version = UMT_BROKER_VERSION,
				       .op = UMT_BROKER_OPEN,
				       .ring_bytes = 65536 };
	struct umt_answer answer;

	return broker_ask(connection, &asked, &answer, fds, UMT_BROKER_FDS_MAX);
}

static int is_refused(void *id)
{
	int fds[UMT_BROKER_FDS_MAX], fd;

	become_somebody(*(unsigned *)id);
	fd = broker_connect();
	return open_plainly(&fd, fds) < 0;
}

static int binds_a_map(void *unused)
{
	int fds[UMT_BROKER_FDS_MAX], fd;
	union bpf_attr attr = { 0 };

	become_somebody(SOMEBODY);
	fd = broker_connect();
	ktest_check(open_plainly(&fd, fds) > UMT_FD_LINKS);
	attr.prog_bind_map.prog_fd = (uint32_t)fds[UMT_FD_CONTROL];
	attr.prog_bind_map.map_fd = (uint32_t)fds[UMT_FD_RING];
	if (syscall(SYS_bpf, BPF_PROG_BIND_MAP, &attr, sizeof(attr)))
		return NOT_BOUND;
	return open_plainly(&fd, fds) >= 0;
}

static void who_binds_a_map_is_hung_up_on(void **state)
{
	unsigned self = SOMEBODY, other = OTHER;
	int status;

	umtd_begin(&umtd);
	assert_int_equal(as_somebody(is_refused, &self), 0);
	status = as_somebody(binds_a_map, NULL);
	if (WEXITSTATUS(status) == NOT_BOUND) {
		umtd_end(&umtd);
		ktest_skip("this kernel lets nobody bind maps");
	}
	assert_int_equal(status, 0);
	assert_int_equal(as_somebody(is_refused, &other), 0);
	assert_int_not_equal(as_somebody(is_refused, &self), 0);
	umtd_end(&umtd);
}

KTEST_MAIN(KTEST(who_binds_a_map_is_hung_up_on))
