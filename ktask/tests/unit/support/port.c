/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The four functions that core/ needs, see port.h.
 */
#include "port.h"

#include <sched.h>

__thread uint64_t port_now_ns;
unsigned (*port_distance)(int a, int b);

uint64_t kt_now_ns(void)
{
	return port_now_ns;
}

unsigned kt_node_distance(int a, int b)
{
	if (port_distance)
		return port_distance(a, b);
	return a == b ? 10 : 20;
}

void kt_iter_lock(kt_iter_lock_t *lock)
{
	while (__atomic_exchange_n(&lock->word, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

void kt_iter_unlock(kt_iter_lock_t *lock)
{
	__atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE);
}
