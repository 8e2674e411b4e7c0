/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists the maps of the kernel and how many references each has.  Only umtd uses this, to
 * learn which maps its clients still hold: BPF_MAP_GET_NEXT_ID would need CAP_SYS_ADMIN.
 * Part of umt.bpf.c.
 */
#ifndef UMT_LIST_H
#define UMT_LIST_H

#include "kernel.h"
#include "shared.h"

/* The iterator itself holds a reference to the map that it reports. */
SEC("iter/bpf_map")
int umt_maps(struct bpf_iter__bpf_map *ctx)
{
	struct bpf_map *map = ctx->map;
	struct umt_map told = { 0 };

	if (!map)
		return 0;
	told.id = map->id;
	told.holders = map->refcnt.counter - 1;
	bpf_seq_write(ctx->meta->seq, &told, sizeof(told));
	return 0;
}

#endif /* UMT_LIST_H */
