/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Allocates memory and touches it, in one of several ways, as a program that knows no
 * ktask; prints the seconds that touching took, and the most memory that it had.
 *
 *	touch-memory MIB memset|compute|page|random|two [again]
 *
 * With "again" what is timed is a second touch, of memory that is present: no way of
 * making it present can be faster.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static char *block;
static size_t len;

static void fill(void)
{
	memset(block, 1, len);
}

/* What is stored has to be computed. */
static void compute(void)
{
	uint32_t *words = (uint32_t *)block, word = 1;

	for (size_t i = 0; i < len / 4; i++) {
		word = word * 1664525u + 1013904223u;
		words[i] = word;
	}
}

static void store_in_pages(void)
{
	for (size_t at = 0; at < len; at += 4096)
		block[at] = 1;
}

/* As often as there are pages. */
static void store_at_random(void)
{
	uint64_t word = 88172645463325252u;

	for (size_t i = 0; i < len / 4096; i++) {
		word ^= word << 13;
		word ^= word >> 7;
		word ^= word << 17;
		block[word % len] = 1;
	}
}

static void *fill_half(void *half)
{
	memset(half, 1, len / 2);
	return NULL;
}

static void fill_by_two(void)
{
	pthread_t other;

	if (pthread_create(&other, NULL, fill_half, block + len / 2))
		exit(1);
	fill_half(block);
	pthread_join(other, NULL);
}

static const struct {
	const char *name;
	void (*touch)(void);
} ways[] = {
	{ "memset", fill },	    { "compute", compute },
	{ "page", store_in_pages }, { "random", store_at_random },
	{ "two", fill_by_two },
};

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run_way(void (*touch)(void), bool again)
{
	double begin = seconds(), end;
	struct rusage usage;

	block = malloc(len);
	if (!block)
		exit(1);
	touch();
	if (again) {
		begin = seconds();
		touch();
	}
	end = seconds();
	getrusage(RUSAGE_SELF, &usage);
	printf("%.4f %.1f\n", end - begin, (double)usage.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
	len = argc > 2 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	for (size_t i = 0; len && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(argv[2], ways[i].name))
			continue;
		run_way(ways[i].touch, argc > 3 && !strcmp(argv[3], "again"));
		return 0;
	}
	fprintf(stderr, "usage: touch-memory MIB WAY [again]\n");
	return 2;
}
