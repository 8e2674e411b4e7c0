/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which maps there are, and how many hold each.  Only umtd uses this, to learn what its
 * clients keep: BPF_MAP_GET_NEXT_ID would need CAP_SYS_ADMIN.  Part of umt.bpf.c.
 */
#ifndef UMT_LIST_H
#define UMT_LIST_H

#include "kernel.h"
#include "shared.h"

/* Reading the list holds each map once more while that is told of. */
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
