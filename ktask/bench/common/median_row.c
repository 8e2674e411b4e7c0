/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See median_row.h. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/median_row.h"
#include "bench/common/stats.h"

void print_median_row(const char *name, const double *seconds, unsigned nr,
		      const double *plain)
{
	double *copy = stats_copy(seconds, nr);

	printf("  %-34s %9.2f ms", name, stats_of(copy, nr).median * 1e3);
	if (plain)
		printf("  %6.3f times as fast",
		       median_ratio(plain, seconds, nr));
	printf("\n");
	free(copy);
}
