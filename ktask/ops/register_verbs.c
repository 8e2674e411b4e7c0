/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory regions for RDMA, by libibverbs, which is loaded when it is used.
 *
 * Each piece is one region: the program must know which bytes a key is for.
 */
#include <errno.h>
#include <stddef.h>

#include "common/struct_size.h"
#include "register_device.h"

static const char *const verbs_names[2] = { "ibv_reg_mr", "ibv_dereg_mr" };

typedef struct ibv_mr *(*reg_mr_func)(struct ibv_pd *pd, void *addr, size_t len,
				      int access);
typedef int (*dereg_mr_func)(struct ibv_mr *mr);

static struct ibv_mr **mr_of(const struct ktask_verbs *verbs, const char *pos)
{
	size_t index =
		(size_t)(pos - (const char *)verbs->addr) / verbs->mr_bytes;

	return index < verbs->nr_mrs ? &verbs->mrs[index] : NULL;
}

static int add_region(void *start, void *end, void *arg)
{
	struct ktask_verbs *verbs = arg;
	struct ibv_mr **mr = mr_of(verbs, start);
	reg_mr_func reg_mr =
		(reg_mr_func)register_device_func(verbs_names, NULL, 0);

	if (!mr)
		return -ENOSPC;
	errno = 0;
	*mr = reg_mr(verbs->pd, start, (size_t)((char *)end - (char *)start),
		     verbs->access);
	if (*mr)
		return 0;
	return errno ? -errno : -EIO;
}

static int take_region(void *start, void *end, void *arg)
{
	struct ktask_verbs *verbs = arg;
	struct ibv_mr **mr = mr_of(verbs, start);
	dereg_mr_func dereg_mr =
		(dereg_mr_func)register_device_func(verbs_names, NULL, 1);
	int error = dereg_mr(*mr);

	*mr = NULL;
	/* A number of errno, as the manual says; drivers return -1 as well. */
	if (error < 0)
		return errno ? -errno : -EIO;
	return -error;
}

static int load_verbs(void)
{
	static const char *const libraries[] = { "libibverbs.so.1", NULL };

	const char *found = NULL;

	return register_device_load(verbs_names, &found, libraries);
}

int ktask_register_verbs(struct ktask_register_ctl *ctl,
			 struct ktask_verbs *verbs)
{
	int saved_errno = errno;
	int error = register_device_init(
		ctl, verbs, STRUCT_SIZE_TO(struct ktask_verbs, nr_mrs),
		sizeof(*verbs), add_region, take_region);

	if (error)
		return error;
	if (!verbs->pd || !verbs->mrs || !verbs->mr_bytes || verbs->padding)
		return -EINVAL;
	ctl->flags = KTASK_REGISTER_PARALLEL | KTASK_REGISTER_MAKES_PAGES;
	ctl->unit_bytes = verbs->mr_bytes;
	ctl->max_piece_bytes = verbs->mr_bytes;
	error = load_verbs();
	errno = saved_errno;
	return error;
}
