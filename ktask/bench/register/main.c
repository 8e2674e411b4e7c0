/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Registering memory with an io_uring, and filling memory through userfaultfd:
 *
 *	bench-register [MIB [ROUNDS]]
 *
 * Rounds alternate between the sides.  Prints medians, the median of the ratios of
 * the rounds, and what else the machine did meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/common/machine.h"
#include "bench/common/others.h"
#include "bench/common/stats.h"
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
	char *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check_that(at != MAP_FAILED, "mapping memory");
	madvise(at, len, MADV_NOHUGEPAGE);
	return at;
}

void print_row(const char *name, const double *seconds, unsigned nr,
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
