/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See rights.h.
 *
 * Behaves badly: a user namespace that maps every id is taken for the initial one.  So
 * is any namespace if there is no /proc.
 */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "rights.h"

bool rights_are_whole(void)
{
	FILE *file = fopen("/proc/self/uid_map", "re");
	uint32_t first, outside, nr;
	bool whole;

	if (!file)
		return true;
	/* The map is empty until somebody has written it. */
	whole = fscanf(file, "%u %u %u", &first, &outside, &nr) == 3 &&
		nr == UINT32_MAX;
	fclose(file);
	return whole;
}

bool rights_of_root(void)
{
	return !geteuid() && rights_are_whole();
}
