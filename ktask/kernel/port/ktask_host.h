/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel host keeps for each work item; see engine/host.h. */
#ifndef KTASK_HOST_H
#define KTASK_HOST_H

#include "kernel/engine/kernel_pool.h"

/* The operations are bound at compile time: with retpolines an empty job took 1.2 times as
 * long through pointers. */
#define KT_HOST_BOUND

/*
 * Locking:
 *	P: kernel/engine/kernel_pool.h
 *	C: the caller of its job (kernel/engine/kernel_job.h)
 *	S: written by the thread that submits the item, then by the helper that begins it
 *	   or by the thread that cancels it: the state of the item says who may write
 */
struct kt_host_item {
	struct pool_item pooled; /* P */
	struct helper *process_helper; /* made for it, or NULL; C */
	int cpu; /* promised to its helper until that begins; -1 none; S */
};

#endif /* KTASK_HOST_H */
