/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a task of the programs does alone; the same code for every runtime.
 */
#include <string.h>

#include "bench/programs/programs.h"

/* ---- queens ---- */

unsigned queens_free(const struct queens *here)
{
	return here->all & ~(here->columns | here->left | here->right);
}

struct queens queens_put(const struct queens *here, unsigned bit)
{
	return (struct queens){ here->all, here->columns | bit,
				(here->left | bit) << 1,
				(here->right | bit) >> 1, here->rows - 1 };
}

long queens_alone(const struct queens *here, long *nr_tasks)
{
	bool makes_tasks = here->rows > QUEENS_ALONE;
	long found = 0;

	if (!here->rows)
		return 1;
	for (unsigned left = queens_free(here); left; left &= left - 1) {
		struct queens next = queens_put(here, left & -left);

		if (nr_tasks && makes_tasks)
			++*nr_tasks;
		found += queens_alone(&next, nr_tasks);
	}
	return found;
}

/* ---- sort ---- */

static void sort_few(uint32_t *data, size_t nr)
{
	for (size_t i = 1; i < nr; i++) {
		uint32_t one = data[i];
		size_t at = i;

		for (; at && data[at - 1] > one; at--)
			data[at] = data[at - 1];
		data[at] = one;
	}
}

static uint32_t middle_of(uint32_t a, uint32_t b, uint32_t c)
{
	if (a > b)
		return c > a ? a : c > b ? c : b;
	return c > b ? b : c > a ? c : a;
}

/* Quicksort; goes on with the longer side itself. */
static void sort_numbers(uint32_t *data, size_t nr)
{
	while (nr > 24) {
		uint32_t pivot = middle_of(data[0], data[nr / 2], data[nr - 1]);
		size_t low = 0, high = nr - 1;

		for (;; low++, high--) {
			uint32_t other;

			while (data[low] < pivot)
				low++;
			while (data[high] > pivot)
				high--;
			if (low >= high)
				break;
			other = data[low];
			data[low] = data[high];
			data[high] = other;
		}
		if (low < nr - low) {
			sort_numbers(data, low);
			data += low;
			nr -= low;
		} else {
			sort_numbers(data + low, nr - low);
			nr = low;
		}
	}
	sort_few(data, nr);
}

void sort_alone(const struct sort_part *part)
{
	sort_numbers(part->data, part->nr);
	if (part->to_scratch)
		memcpy(part->scratch, part->data,
		       part->nr * sizeof(*part->scratch));
}

void merge_alone(const struct merge_part *part)
{
	const uint32_t *a = part->a, *a_end = a + part->nr_a;
	const uint32_t *b = part->b, *b_end = b + part->nr_b;
	uint32_t *to = part->to;

	while (a < a_end && b < b_end) {
		bool first = *a <= *b;

		*to++ = first ? *a : *b;
		a += first;
		b += !first;
	}
	memcpy(to, a, (size_t)(a_end - a) * sizeof(*a));
	memcpy(to + (a_end - a), b, (size_t)(b_end - b) * sizeof(*b));
}

/* The longer one is first. */
static struct merge_part order_merge(const uint32_t *a, size_t nr_a,
				     const uint32_t *b, size_t nr_b,
				     uint32_t *to)
{
	if (nr_a < nr_b)
		return (struct merge_part){ b, a, nr_b, nr_a, to };
	return (struct merge_part){ a, b, nr_a, nr_b, to };
}

void sort_split(const struct sort_part *part, struct sort_part halves[2],
		struct merge_part *merge)
{
	size_t half = part->nr / 2, rest = part->nr - half;
	uint32_t *from = part->to_scratch ? part->data : part->scratch;
	uint32_t *to = part->to_scratch ? part->scratch : part->data;

	halves[0] = (struct sort_part){ part->data, part->scratch, half,
					!part->to_scratch };
	halves[1] = (struct sort_part){ part->data + half, part->scratch + half,
					rest, !part->to_scratch };
	*merge = order_merge(from, half, from + half, rest, to);
}

/* How many of the sorted numbers are less. */
static size_t count_less(const uint32_t *data, size_t nr, uint32_t than)
{
	size_t first = 0;

	while (nr) {
		size_t half = nr / 2;

		if (data[first + half] < than) {
			first += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	return first;
}

void merge_split(const struct merge_part *part, struct merge_part halves[2])
{
	size_t a = part->nr_a / 2;
	size_t b = count_less(part->b, part->nr_b, part->a[a]);

	halves[0] = order_merge(part->a, a, part->b, b, part->to);
	halves[1] = order_merge(part->a + a, part->nr_a - a, part->b + b,
				part->nr_b - b, part->to + a + b);
}

/* ---- factors ---- */

void lu_diagonal(const struct lu_matrix *matrix, int at)
{
	double(*here)[LU_EDGE] = (void *)*lu_block(matrix, at, at);

	for (int k = 0; k < LU_EDGE; k++)
		for (int i = k + 1; i < LU_EDGE; i++) {
			here[i][k] /= here[k][k];
			for (int j = k + 1; j < LU_EDGE; j++)
				here[i][j] -= here[i][k] * here[k][j];
		}
}

void lu_right(const struct lu_matrix *matrix, int at, int column)
{
	double(*diagonal)[LU_EDGE] = (void *)*lu_block(matrix, at, at);
	double(*here)[LU_EDGE] = (void *)*lu_block(matrix, at, column);

	for (int k = 0; k < LU_EDGE; k++)
		for (int i = k + 1; i < LU_EDGE; i++)
			for (int j = 0; j < LU_EDGE; j++)
				here[i][j] -= diagonal[i][k] * here[k][j];
}

void lu_below(const struct lu_matrix *matrix, int at, int row)
{
	double(*diagonal)[LU_EDGE] = (void *)*lu_block(matrix, at, at);
	double(*here)[LU_EDGE] = (void *)*lu_block(matrix, row, at);

	for (int i = 0; i < LU_EDGE; i++)
		for (int k = 0; k < LU_EDGE; k++) {
			here[i][k] /= diagonal[k][k];
			for (int j = k + 1; j < LU_EDGE; j++)
				here[i][j] -= here[i][k] * diagonal[k][j];
		}
}

void lu_inner(const struct lu_matrix *matrix, int at, int row, int column)
{
	double(*left)[LU_EDGE] = (void *)*lu_block(matrix, row, at);
	double(*above)[LU_EDGE] = (void *)*lu_block(matrix, at, column);
	double **block = lu_block(matrix, row, column);
	double(*here)[LU_EDGE];

	if (!*block)
		*block = lu_space(matrix, row, column);
	here = (void *)*block;
	for (int i = 0; i < LU_EDGE; i++)
		for (int k = 0; k < LU_EDGE; k++)
			for (int j = 0; j < LU_EDGE; j++)
				here[i][j] -= left[i][k] * above[k][j];
}

/* ---- tree ---- */

#define TREE_ROUNDS 48
/* Of 1,000 nodes so many have TREE_SONS sons, the others none: 40 times as many
 * nodes as the root has sons. */
#define TREE_FORKS 195

/* A step of splitmix64 (G. Steele et al., OOPSLA 2014). */
static uint64_t mix_bits(uint64_t bits)
{
	bits += 0x9e3779b97f4a7c15;
	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
	return bits ^ bits >> 31;
}

struct tree_node tree_son(const struct tree_node *node, int which)
{
	uint64_t hash = mix_bits(node->hash + (uint64_t)which);

	for (int i = 0; i < TREE_ROUNDS; i++)
		hash = mix_bits(hash);
	return (struct tree_node){ hash,
				   hash % 1000 < TREE_FORKS ? TREE_SONS : 0 };
}

long tree_alone(const struct tree_node *node)
{
	long nr = 1;

	for (int i = 0; i < node->sons; i++) {
		struct tree_node son = tree_son(node, i);

		nr += tree_alone(&son);
	}
	return nr;
}
