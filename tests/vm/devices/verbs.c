/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libibverbs, and the kernel's own count of what it has registered: see verbs.h.
 */
#include <dlfcn.h>
#include <rdma/rdma_netlink.h>

#include "ktest.h"
#include "rdma_link.h"
#include "verbs.h"

struct ibv_context;
struct ibv_device;

static struct ibv_context *context;

static void *find_function(const char *name)
{
	static void *library;
	void *func;

	if (!library)
		library = dlopen("libibverbs.so.1", RTLD_NOW);
	ktest_check(library);
	func = dlsym(library, name);
	ktest_check(func);
	return func;
}

struct ibv_pd *verbs_open(void)
{
	struct ibv_device **(*get_list)(int *nr) =
		(struct ibv_device * *(*)(int *))
			find_function("ibv_get_device_list");
	struct ibv_context *(*open_device)(struct ibv_device * device) =
		(struct ibv_context * (*)(struct ibv_device *))
			find_function("ibv_open_device");
	struct ibv_pd *(*alloc_pd)(struct ibv_context * context) =
		(struct ibv_pd * (*)(struct ibv_context *))
			find_function("ibv_alloc_pd");
	struct ibv_device **list;
	struct ibv_pd *pd;
	int nr = 0;

	list = get_list(&nr);
	ktest_check(list);
	ktest_check(nr == 1);
	context = open_device(list[0]);
	ktest_check(context);
	pd = alloc_pd(context);
	ktest_check(pd);
	return pd;
}

void verbs_close(struct ibv_pd *pd)
{
	int (*dealloc_pd)(struct ibv_pd * pd) =
		(int (*)(struct ibv_pd *))find_function("ibv_dealloc_pd");
	int (*close_device)(struct ibv_context * context) = (int (*)(
		struct ibv_context *))find_function("ibv_close_device");

	ktest_check(dealloc_pd(pd) == 0);
	ktest_check(close_device(context) == 0);
}

/* What is being looked for, and what was found. */
struct entry_count {
	const char *wanted;
	const char *name;
	long count;
};

static void read_entry(unsigned type, const void *data, size_t len, void *arg)
{
	struct entry_count *entry = arg;
	uint64_t value;

	if (type == RDMA_NLDEV_ATTR_RES_SUMMARY ||
	    type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY) {
		rdma_link_each(data, len, read_entry, arg);
	} else if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME) {
		entry->name = data;
	} else if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR &&
		   entry->name && !strcmp(entry->name, entry->wanted)) {
		memcpy(&value, data, sizeof(value));
		entry->count = (long)value;
	}
}

long verbs_count(const char *what)
{
	struct entry_count entry = { .wanted = what, .count = -1 };
	static const uint32_t first_device;
	struct rdma_link_request request;

	rdma_link_begin(&request, RDMA_NLDEV_CMD_RES_GET);
	rdma_link_put(&request, RDMA_NLDEV_ATTR_DEV_INDEX, &first_device,
		      sizeof(first_device));
	if (rdma_link_ask(&request, read_entry, &entry))
		return -1;
	return entry.count;
}
