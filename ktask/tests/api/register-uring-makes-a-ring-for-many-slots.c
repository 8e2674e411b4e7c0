/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: a piece of many slots of an io_uring is pinned for one scratch ring, since
 * each takes some 50 us to make and end.
 */
#include "ktest.h"

#include "device.h"
#include "syscalls.h"
#include "uring.h"

#define NR_SLOTS 256u
#define SLOT 4096
#define LEN ((size_t)NR_SLOTS * SLOT)

static _Atomic unsigned nr_rings;

static bool count_rings(long number, const long args[6], long *result)
{
	(void)args;
	(void)result;
	nr_rings += number == SYS_io_uring_setup;
	return false;
}

static void one_ring_is_made_for_a_piece(void **state)
{
	struct ktask_uring_buffers buffers = KTASK_URING_BUFFERS_INIT;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	struct ktask_registration *registration;
	char *at = map_private(LEN);
	struct uring ring;

	(void)state;
	if (!uring_open(&ring, NR_SLOTS))
		ktest_skip("no io_uring with empty slots");
	buffers.ring_fd = ring.fd;
	buffers.addr = at;
	buffers.slot_bytes = SLOT;
	assert_int_equal(ktask_register_uring(&ctl, &buffers), 0);
	if (!(ctl.flags & KTASK_REGISTER_PARALLEL))
		ktest_skip("this kernel does not clone buffers");
	ctl.flags = 0;
	nr_rings = 0;
	syscalls_answer = count_rings;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, NULL), 0);
	syscalls_answer = NULL;
	ktask_registration_info_get(registration, &info);
	assert_int_equal(info.bytes, LEN);
	assert_int_equal(nr_rings, info.pieces);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	uring_close(&ring);
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(one_ring_is_made_for_a_piece))
