/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An idle pool of 16 helpers takes less than 1 MiB of memory, stacks aside:
 * what the process has more than before its first job.
 */
#include "support/work.h"

#define MANY_CPUS 21
#include "support/many_cpus.h"

#define NR_HELPERS 16
#define MIB 1048576u
/* Helpers' stacks are the mappings of this size; user/pool/user_helper.c. */
#define STACK_KB 256

/* Resident memory, of mappings of helpers' stacks or of all others. */
static size_t resident_bytes(bool stacks)
{
	FILE *in = fopen("/proc/self/smaps", "r");
	unsigned long size_kb = 0, kb;
	size_t sum = 0;
	char line[512];

	while (in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "Size: %lu kB", &kb) == 1)
			size_kb = kb;
		else if (sscanf(line, "Rss: %lu kB", &kb) == 1 &&
			 (size_kb == STACK_KB) == stacks)
			sum += kb * 1024;
	}
	if (in)
		fclose(in);
	return sum;
}

/* A small main program, in which the library is all that grows. */
static int measure_pool(void *arg)
{
	size_t before, after;

	/* However slow the machine is, none ends meanwhile. */
	setenv("KTASK_IDLE_MS", "3600000", 1);
	before = resident_bytes(false);
	before = resident_bytes(false);
	ktest_check(!work_met());
	/* All have run, and maybe one for a caller that was taken to be blocked. */
	for (int i = 0; i < 60000 && helpers_now(NULL, 0) < NR_HELPERS; i++)
		nap_us(1000);
	nap_us(100000);
	ktest_check(helpers_now(NULL, 0) >= NR_HELPERS);
	after = resident_bytes(false);
	printf("# idle pool of %d: %zu KiB, stacks %zu KiB\n", NR_HELPERS,
	       (after - before) / 1024, resident_bytes(true) / 1024);
	ktest_check(after < before + MIB);
	/* That what was taken for stacks is stacks. */
	ktest_check(resident_bytes(true) >= NR_HELPERS * 4096u);
	return 0;
}

static void less_than_1_mib(void **state)
{
	need_sure_helper();
	if (KTEST_ASAN || KTEST_TSAN)
		ktest_skip("sanitizers take memory of their own");
	assert_int_equal(ktest_in_child(measure_pool, NULL), 0);
}

KTEST_MAIN(KTEST(less_than_1_mib))
