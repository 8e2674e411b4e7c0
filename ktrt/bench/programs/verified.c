/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes what a program works on, times the program, and compares.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/programs/programs.h"

static double read_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *must_have(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static double run_queens(const struct runtime_programs *programs, bool is_small)
{
	int rows = is_small ? 8 : 12;
	struct queens top = { (1u << rows) - 1, 0, 0, 0, rows };
	long nr_tasks = 0, wanted = queens_alone(&top, &nr_tasks), found;
	double start = read_ns(), took;

	found = programs->queens(&top);
	took = read_ns() - start;
	return found == wanted ? took / (double)nr_tasks : -1;
}

/* ---- sort ---- */

struct digest {
	uint64_t sum, mixed;
};

/* The same whatever the order. */
static struct digest digest_numbers(const uint32_t *data, size_t nr)
{
	struct digest digest = { 0, 0 };

	for (size_t i = 0; i < nr; i++) {
		digest.sum += data[i];
		digest.mixed += (data[i] ^ 0x9e3779b9ull) * data[i];
	}
	return digest;
}

static bool is_sorted(const uint32_t *data, size_t nr)
{
	for (size_t i = 1; i < nr; i++)
		if (data[i - 1] > data[i])
			return false;
	return true;
}

static double run_sort(const struct runtime_programs *programs, bool is_small)
{
	size_t nr = is_small ? 60000 : 2000000;
	uint32_t *data = must_have(malloc(nr * sizeof(*data)));
	uint32_t *scratch = must_have(calloc(nr, sizeof(*scratch)));
	struct sort_part all = { data, scratch, nr, false };
	struct digest before, after;
	uint64_t bits = 1;
	double start, took;

	for (size_t i = 0; i < nr; i++) {
		bits = bits * 6364136223846793005 + 1442695040888963407;
		data[i] = (uint32_t)(bits >> 32);
	}
	before = digest_numbers(data, nr);
	start = read_ns();
	programs->sort(&all);
	took = read_ns() - start;
	after = digest_numbers(data, nr);
	if (!is_sorted(data, nr) || memcmp(&before, &after, sizeof(before)))
		took = -1;
	free(data);
	free(scratch);
	return took / (double)nr;
}

/* ---- factors ---- */

/* Touched before the time is taken: what the kernel and malloc() take for memory in one
 * thread or another is not the runtime's. */
static double *make_space(size_t nr_blocks)
{
	size_t bytes = nr_blocks * LU_SPACE * sizeof(double);

	return memset(must_have(aligned_alloc(64, bytes)), 0, bytes);
}

/* Some blocks off the diagonal are absent; its numbers are the largest. */
static struct lu_matrix make_matrix(int nr)
{
	struct lu_matrix matrix = { nr, NULL, NULL };
	unsigned bits = 1;

	matrix.blocks =
		must_have(calloc((size_t)nr * (size_t)nr, sizeof(double *)));
	matrix.space = make_space((size_t)nr * (size_t)nr);
	for (int i = 0; i < nr * nr; i++) {
		int row = i / nr, column = i % nr;
		double *block;

		if (abs(row - column) > 1 && (row % 3 || column % 2))
			continue;
		block = lu_space(&matrix, row, column);
		for (int j = 0; j < LU_EDGE * LU_EDGE; j++) {
			bits = bits * 1664525 + 1013904223;
			block[j] = (double)(bits >> 8) / (1 << 24);
			if (row == column && j % (LU_EDGE + 1) == 0)
				block[j] += LU_EDGE * nr;
		}
		matrix.blocks[i] = block;
	}
	return matrix;
}

static void free_matrix(struct lu_matrix *matrix)
{
	free(matrix->blocks);
	free(matrix->space);
}

/* By one thread; how many steps it took. */
static long factor_alone(const struct lu_matrix *matrix)
{
	long nr_steps = 0;

	for (int at = 0; at < matrix->nr; at++) {
		lu_diagonal(matrix, at);
		nr_steps++;
		for (int i = at + 1; i < matrix->nr; i++) {
			if (*lu_block(matrix, at, i))
				lu_right(matrix, at, i), nr_steps++;
			if (*lu_block(matrix, i, at))
				lu_below(matrix, at, i), nr_steps++;
		}
		for (int i = at + 1; i < matrix->nr; i++)
			for (int j = at + 1; j < matrix->nr; j++)
				if (*lu_block(matrix, i, at) &&
				    *lu_block(matrix, at, j))
					lu_inner(matrix, at, i, j), nr_steps++;
	}
	return nr_steps;
}

static bool is_same_block(const double *a, const double *b)
{
	return a && b ? !memcmp(a, b, LU_EDGE * LU_EDGE * sizeof(*a)) : a == b;
}

static double run_sparselu(const struct runtime_programs *programs,
			   bool is_small)
{
	int nr = is_small ? 8 : 32;
	struct lu_matrix matrix = make_matrix(nr), wanted = make_matrix(nr);
	long nr_steps = factor_alone(&wanted);
	double start = read_ns(), took;

	programs->factor(&matrix);
	took = read_ns() - start;
	for (int i = 0; i < nr * nr; i++)
		if (!is_same_block(matrix.blocks[i], wanted.blocks[i]))
			took = -1;
	free_matrix(&matrix);
	free_matrix(&wanted);
	return took / (double)nr_steps;
}

static double run_uts(const struct runtime_programs *programs, bool is_small)
{
	struct tree_node root = { 20261123, is_small ? 100 : 8000 };
	long wanted = tree_alone(&root), found;
	double start = read_ns(), took;

	found = programs->tree(&root);
	took = read_ns() - start;
	return found == wanted ? took / (double)wanted : -1;
}

static const struct {
	const char *name;
	double (*run)(const struct runtime_programs *programs, bool is_small);
} all_programs[] = {
	{ "nqueens", run_queens },
	{ "sort", run_sort },
	{ "sparselu", run_sparselu },
	{ "uts", run_uts },
};

double program_run(const struct runtime_programs *programs, const char *name,
		   bool is_small)
{
	for (size_t i = 0; i < sizeof(all_programs) / sizeof(all_programs[0]);
	     i++)
		if (programs && !strcmp(name, all_programs[i].name))
			return all_programs[i].run(programs, is_small);
	return NO_PROGRAM;
}
