/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Allocates memory and touches it, in one of several ways, as a program that knows no
 * ktask; prints the seconds that both took, and the most memory that it had.
 *
 *	touch-memory MIB WAY [HOW [huge]]
 *
 * HOW says who makes the pages:
 *
 *	malloc		the touches (the default)
 *	present		what is timed is a second touch: no way can be faster
 *	populate	the kernel, as for MAP_POPULATE
 *	threads		as many threads as there are CPUs, before, as QEMU does
 *	beside		one thread, from the first touch on, that knows how much is touched
 *			and in which order: no helper that must find out can be faster
 *
 * With "huge" the program advises huge pages itself.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HUGE_BYTES ((size_t)2 << 20)
#define CPUS_MAX 64
/* Of a row of the matrix. */
#define ROW_ENTRIES 32

static char *block;
static size_t len;

static uint64_t next_random(void)
{
	static uint64_t word = 88172645463325252u;

	word ^= word << 13;
	word ^= word >> 7;
	word ^= word << 17;
	return word;
}

/* ---- ways of touching ---- */

static void fill_block(void)
{
	memset(block, 1, len);
}

/* What is stored has to be computed. */
static void compute_words(void)
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

/* One page of so many, as who walks down a column of a matrix. */
static void store_in_steps(size_t pages)
{
	for (size_t at = 0; at < len; at += pages * 4096)
		block[at] = 1;
}

static void store_in_second_pages(void)
{
	store_in_steps(2);
}

static void store_in_16th_pages(void)
{
	store_in_steps(16);
}

static void store_in_128th_pages(void)
{
	store_in_steps(128);
}

/* As often as there are pages. */
static void store_at_random(void)
{
	for (size_t i = 0; i < len / 4096; i++)
		block[next_random() % len] = 1;
}

/* A table with as many slots as there are words; one in sixteen is taken, so that each
 * page is touched. */
static void hash_keys(void)
{
	uint64_t *slots = (uint64_t *)block;
	size_t nr = len / sizeof(*slots);

	for (size_t i = 0; i < nr / 16; i++) {
		uint64_t key = next_random() | 1;
		size_t at = (size_t)(key * 11400714819323198485u) % nr;

		while (slots[at] && slots[at] != key)
			at = at + 1 == nr ? 0 : at + 1;
		slots[at] = key;
	}
}

/* Entries of a matrix come in any order, and each goes to its row; so many come that
 * each page is touched. */
static void scatter_entries(void)
{
	struct entry {
		uint64_t column;
		double value;
	} *entries = (struct entry *)block;
	size_t nr_rows = len / sizeof(*entries) / ROW_ENTRIES;
	unsigned char *used = calloc(nr_rows, 1);

	if (!used)
		exit(1);
	for (size_t i = 0; i < nr_rows * ROW_ENTRIES / 8; i++) {
		size_t row = next_random() % nr_rows;
		size_t at = row * ROW_ENTRIES + used[row];

		used[row] = (unsigned char)((used[row] + 1) % ROW_ENTRIES);
		entries[at] = (struct entry){ i, 1.0 };
	}
	free(used);
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

#ifdef _OPENMP
/* A loop as programs have it, divided between two threads. */
static void fill_by_openmp(void)
{
	double *numbers = (double *)block;
	size_t nr = len / sizeof(*numbers);

#pragma omp parallel for num_threads(2) schedule(static)
	for (size_t i = 0; i < nr; i++)
		numbers[i] = 1.0;
}
#endif

static const struct {
	const char *name;
	void (*touch)(void);
} ways[] = {
	{ "memset", fill_block },	 { "compute", compute_words },
	{ "page", store_in_pages },	 { "second", store_in_second_pages },
	{ "16th", store_in_16th_pages }, { "128th", store_in_128th_pages },
	{ "random", store_at_random },	 { "hash", hash_keys },
	{ "sparse", scatter_entries },	 { "two", fill_by_two },
#ifdef _OPENMP
	{ "openmp", fill_by_openmp },
#endif
};

/* ---- who makes the pages ---- */

static char *map_aligned(int flags)
{
	char *memory = mmap(NULL, len + HUGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	return (char *)(((uintptr_t)memory + HUGE_BYTES - 1) &
			~(uintptr_t)(HUGE_BYTES - 1));
}

static void advise_huge(bool huge)
{
	if (huge && madvise(block, len, MADV_HUGEPAGE))
		exit(1);
}

static void allocate_block(bool huge)
{
	block = huge ? map_aligned(0) : malloc(len);
	if (!block)
		exit(1);
	advise_huge(huge);
}

static void populate_block(bool huge)
{
	block = map_aligned(huge ? 0 : MAP_POPULATE);
	advise_huge(huge);
	if (huge && madvise(block, len, MADV_POPULATE_WRITE))
		exit(1);
}

static void *touch_part(void *part)
{
	size_t nr = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	size_t part_len = len / nr / HUGE_BYTES * HUGE_BYTES;
	char *at = block + (size_t)part * part_len;
	char *end = (size_t)part == nr - 1 ? block + len : at + part_len;

	for (; at < end; at += 4096)
		*(volatile char *)at = *(volatile char *)at;
	return NULL;
}

static void touch_by_threads(bool huge)
{
	size_t nr = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[CPUS_MAX];

	block = map_aligned(0);
	advise_huge(huge);
	for (size_t i = 0; i < nr && i < CPUS_MAX; i++)
		if (pthread_create(&threads[i], NULL, touch_part, (void *)i))
			exit(1);
	for (size_t i = 0; i < nr && i < CPUS_MAX; i++)
		pthread_join(threads[i], NULL);
}

static void *make_in_order(void *unused)
{
	for (char *at = block; at + HUGE_BYTES <= block + len; at += HUGE_BYTES)
		madvise(at, HUGE_BYTES, MADV_POPULATE_WRITE);
	return unused;
}

static void make_beside(bool huge)
{
	pthread_t maker;

	block = map_aligned(0);
	advise_huge(huge);
	if (pthread_create(&maker, NULL, make_in_order, NULL) ||
	    pthread_detach(maker))
		exit(1);
}

static const struct {
	const char *name;
	void (*make)(bool huge);
} makers[] = {
	{ "malloc", allocate_block },	{ "present", allocate_block },
	{ "populate", populate_block }, { "threads", touch_by_threads },
	{ "beside", make_beside },
};

static double read_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run_way(void (*touch)(void), void (*make)(bool huge), bool huge,
		    bool again)
{
	double begin = read_seconds(), end;
	struct rusage usage;

	make(huge);
	if (again) {
		memset(block, 0, len);
		begin = read_seconds();
	}
	touch();
	end = read_seconds();
	getrusage(RUSAGE_SELF, &usage);
	printf("%.4f %.1f\n", end - begin, (double)usage.ru_maxrss / 1024);
}

#define NR(array) (sizeof(array) / sizeof((array)[0]))

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[3] : "malloc";
	bool huge = argc > 4 && !strcmp(argv[4], "huge");
	size_t way = 0, maker = 0;

	len = argc > 2 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	while (len && way < NR(ways) && strcmp(argv[2], ways[way].name))
		way++;
	while (maker < NR(makers) && strcmp(how, makers[maker].name))
		maker++;
	if (!len || way == NR(ways) || maker == NR(makers)) {
		fprintf(stderr, "usage: touch-memory MIB WAY [HOW [huge]]\n");
		return 2;
	}
	run_way(ways[way].touch, makers[maker].make, huge,
		!strcmp(how, "present"));
	return 0;
}
