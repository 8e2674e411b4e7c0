/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Caps: counters with a limit, taken and returned without a lock.
 */
#include "core/caps.h"

unsigned kt_cap_limit(unsigned cpus, unsigned percent)
{
	uint64_t limit = (uint64_t)cpus * percent / 100;

	if (!percent || cpus < 2)
		return 0;
	return (unsigned)KT_MAX(KT_MIN(limit, cpus - 1), 1);
}

unsigned kt_cap_node_limit(unsigned cpus, unsigned percent)
{
	uint64_t limit = (uint64_t)cpus * KT_MIN(percent, 100) / 100;

	if (!percent || !cpus)
		return 0;
	return (unsigned)KT_MAX(limit, 1);
}

bool kt_cap_get(struct kt_cap *cap)
{
	uint32_t used = kt_load(&cap->used);

	do {
		if (used >= kt_load(&cap->limit))
			return false;
	} while (!kt_cas(&cap->used, &used, used + 1));
	return true;
}

void kt_cap_put(struct kt_cap *cap)
{
	kt_assert(kt_load(&cap->used) > 0);
	kt_add(&cap->used, (uint32_t)-1);
}

int kt_caps_get(struct kt_cap *machine, struct kt_cap *node)
{
	if (!kt_cap_get(machine))
		return -EAGAIN;
	if (node && kt_cap_get(node))
		return 1;
	return 0;
}
