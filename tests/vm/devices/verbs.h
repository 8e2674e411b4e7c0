/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libibverbs as far as the tests use it, without its headers; and what the kernel says
 * of the RDMA device.
 */
#ifndef TESTS_VM_DEVICES_VERBS_H
#define TESTS_VM_DEVICES_VERBS_H

#include <stddef.h>
#include <stdint.h>

#define VERBS_LOCAL_WRITE 1

/* The beginning of struct ibv_mr, as its users may read it. */
struct verbs_region {
	void *context;
	void *pd;
	void *addr;
	size_t length;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

struct ibv_pd;

/* verbs_open - a protection domain of the only device; also in children: what is not
 * so ends the process */
struct ibv_pd *verbs_open(void);
void verbs_close(struct ibv_pd *pd);

/* verbs_count - how many the kernel has of "mr", "pd", "ctx"; -1: there is no device */
long verbs_count(const char *what);

#endif /* TESTS_VM_DEVICES_VERBS_H */
