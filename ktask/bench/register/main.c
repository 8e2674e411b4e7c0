/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Registering memory with an io_uring, and filling memory through userfaultfd:
 *
 *	bench-register [MIB [ROUNDS]]
 *
 * Rounds alternate between the sides.  Prints medians, the median of the ratios of
 * the rounds, and what else the machine did meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/machine.h"
#include "bench/common/others.h"
#include "part.h"

int main(int argc, char **argv)
{
	struct plan plan = { 1024 * MIB, 9 };
	struct others before = others_now();

	if (argc > 1)
		plan.len = strtoul(argv[1], NULL, 10) * MIB;
	if (argc > 2)
		plan.rounds = (unsigned)strtoul(argv[2], NULL, 10);
	if (argc > 3 || !plan.len || !plan.rounds || plan.rounds > MAX_ROUNDS) {
		fprintf(stderr, "usage: bench-register [MIB [ROUNDS]]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	machine_print();
	printf("%zu MiB of 4 KiB pages, %u rounds\n", plan.len / MIB,
	       plan.rounds);
	bench_uring(&plan);
	bench_uffd(&plan);
	printf("others used %.2f CPUs meanwhile\n", others_cpus(&before));
	return 0;
}
