// SPDX-License-Identifier: GPL-2.0-only
/*
 * The functions that core/deps.h asks of the kernel host: distances and the
 * iterator lock.
 */
#include <linux/numa.h>
#include <linux/topology.h>

#include "core/deps.h"

/* The distance that stands for "unknown" in the firmware's table. */
#define FAR 255

unsigned int kt_node_distance(int a, int b)
{
	if (a < 0 || b < 0 || a >= nr_node_ids || b >= nr_node_ids)
		return FAR;
	return node_distance(a, b);
}

void kt_iter_lock(kt_iter_lock_t *lock)
{
	mutex_lock(&lock->mutex);
}

void kt_iter_unlock(kt_iter_lock_t *lock)
{
	mutex_unlock(&lock->mutex);
}
