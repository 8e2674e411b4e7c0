/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a pool of idle helpers keeps in memory.  Prints three numbers: helpers,
 * bytes resident more than before the library's first call, and bytes in the
 * helpers' stacks, which are not among them.
 *
 * The library sizes its pool by the machine.  So that the answer is for 16
 * helpers everywhere, this program tells it that there are 20 CPUs (80 % of
 * which are 16): it has a sysconf() of its own, which comes before the one in
 * the C library.  What else runs must not keep helpers away, and none leaves.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ktask/ktask.h>

#define CLAIMED_CPUS 20
#define HELPERS 16
/* Helpers come when jobs do; so many jobs are enough for any machine. */
#define JOBS_LEAST 100
#define JOBS_MOST 10000
#define SETTLE_NS 300000000

long __sysconf(int name);
long sysconf(int name);

long sysconf(int name)
{
	return name == _SC_NPROCESSORS_ONLN ? CLAIMED_CPUS : __sysconf(name);
}

struct memory {
	size_t bytes; /* resident, all but stacks of threads */
	size_t stack_bytes;
};

/* A stack of a thread lies directly above one page without access. */
static struct memory read_resident(void)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	struct memory memory = { 0, 0 };
	uintptr_t start = 0, end = 0, guard_end = 0;
	unsigned long kib;
	char line[512], perms[8];
	int stack = 0;

	if (!maps)
		exit(1);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) == 3) {
			stack = start == guard_end;
			guard_end = !strncmp(perms, "---p", 4) &&
						    end - start == 4096
					    ? end
					    : 0;
		} else if (sscanf(line, "Rss: %lu kB", &kib) == 1) {
			*(stack ? &memory.stack_bytes : &memory.bytes) +=
				kib * 1024;
		}
	}
	fclose(maps);
	return memory;
}

static unsigned nr_threads(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned nr = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "Threads: %u", &nr);
	if (status)
		fclose(status);
	return nr;
}

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

int main(void)
{
	DEFINE_KTASK_CTL(ctl, do_nothing, NULL, 1);
	struct timespec settle = { 0, SETTLE_NS };
	struct memory before, after;

	setenv("KTASK_OVERLOAD", "ignore", 1);
	setenv("KTASK_IDLE_MS", "3600000", 1);
	/* What reading takes itself must be there on both sides. */
	read_resident();
	nr_threads();
	before = read_resident();
	for (int i = 0;
	     i < JOBS_LEAST || (i < JOBS_MOST && nr_threads() <= HELPERS); i++)
		if (ktask_run(NULL, 1000, &ctl))
			return 1;
	nanosleep(&settle, NULL);
	after = read_resident();
	printf("%u %zu %zu\n", nr_threads() - 1, after.bytes - before.bytes,
	       after.stack_bytes - before.stack_bytes);
	return 0;
}
