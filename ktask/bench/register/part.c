/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts share: errors, memory without pages.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/common/backing.h"
#include "part.h"

void check_that(int done, const char *what)
{
	if (done)
		return;
	fprintf(stderr, "bench-register: %s: %s\n", what, strerror(errno));
	exit(1);
}

char *map_absent(size_t len)
{
	char *at = backing_map_absent(len);

	check_that(at != MAP_FAILED, "mapping memory");
	return at;
}
