/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's interface to RDMA devices (rdma_netlink.h), as the command rdma(8) of
 * iproute2 uses it.
 */
#ifndef TESTS_VM_DEVICES_RDMA_LINK_H
#define TESTS_VM_DEVICES_RDMA_LINK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/netlink.h>

struct rdma_link_request {
	struct nlmsghdr head;
	char attributes[512];
};

/* Is called for each attribute. */
typedef void (*rdma_link_func)(unsigned type, const void *data, size_t len,
			       void *arg);

void rdma_link_begin(struct rdma_link_request *request, unsigned command);
void rdma_link_put(struct rdma_link_request *request, unsigned short type,
		   const void *data, size_t len);

/* rdma_link_ask - @func for each attribute of the answer; 0 or -errno */
int rdma_link_ask(struct rdma_link_request *request, rdma_link_func func,
		  void *arg);

/* rdma_link_each - @func for each attribute that lies in @data */
void rdma_link_each(const void *data, size_t len, rdma_link_func func,
		    void *arg);

#endif /* TESTS_VM_DEVICES_RDMA_LINK_H */
