/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The programs by OpenMP tasks; compiled by gcc (libgomp) and by clang (libomp).
 */
#include <stdlib.h>

#include "bench/tasks/cases.h"

static long do_queens(struct queens here)
{
	long found[QUEENS_MOST], sum = 0;
	int nr = 0;

	if (here.rows <= QUEENS_ALONE)
		return queens_alone(&here, NULL);
	for (unsigned left = queens_free(&here); left; left &= left - 1) {
		struct queens next = queens_put(&here, left & -left);
		long *into = &found[nr++];

#pragma omp task firstprivate(next, into)
		*into = do_queens(next);
	}
#pragma omp taskwait
	while (nr--)
		sum += found[nr];
	return sum;
}

static long count_queens(const struct queens *top)
{
	long found = 0;

#pragma omp parallel
#pragma omp single
	found = do_queens(*top);
	return found;
}

static void do_merge(struct merge_part part)
{
	struct merge_part halves[2];

	if (part.nr_a + part.nr_b <= MERGE_ALONE) {
		merge_alone(&part);
		return;
	}
	merge_split(&part, halves);
#pragma omp task shared(halves)
	do_merge(halves[0]);
#pragma omp task shared(halves)
	do_merge(halves[1]);
#pragma omp taskwait
}

static void do_sort(struct sort_part part)
{
	struct sort_part halves[2];
	struct merge_part merge;

	if (part.nr <= SORT_ALONE) {
		sort_alone(&part);
		return;
	}
	sort_split(&part, halves, &merge);
#pragma omp task shared(halves)
	do_sort(halves[0]);
#pragma omp task shared(halves)
	do_sort(halves[1]);
#pragma omp taskwait
	do_merge(merge);
}

static void sort_all(const struct sort_part *all)
{
#pragma omp parallel
#pragma omp single
	do_sort(*all);
}

static void spawn_edges(const struct lu_matrix *matrix, int at)
{
	for (int i = at + 1; i < matrix->nr; i++) {
		if (*lu_block(matrix, at, i)) {
#pragma omp task
			lu_right(matrix, at, i);
		}
		if (*lu_block(matrix, i, at)) {
#pragma omp task
			lu_below(matrix, at, i);
		}
	}
}

static void spawn_inner(const struct lu_matrix *matrix, int at)
{
	for (int i = at + 1; i < matrix->nr; i++)
		for (int j = at + 1; j < matrix->nr; j++)
			if (*lu_block(matrix, i, at) &&
			    *lu_block(matrix, at, j)) {
#pragma omp task
				lu_inner(matrix, at, i, j);
			}
}

static void factor_matrix(const struct lu_matrix *matrix)
{
#pragma omp parallel
#pragma omp single
	for (int at = 0; at < matrix->nr; at++) {
		lu_diagonal(matrix, at);
		spawn_edges(matrix, at);
#pragma omp taskwait
		spawn_inner(matrix, at);
#pragma omp taskwait
	}
}

/* The root has thousands of sons, the others few. */
static long do_tree(struct tree_node node)
{
	long few[TREE_SONS], *below = few, sum = 1;

	if (node.sons > TREE_SONS)
		below = malloc((size_t)node.sons * sizeof(*below));
	if (!below)
		abort();
	for (int i = 0; i < node.sons; i++) {
		struct tree_node son = tree_son(&node, i);
		long *into = &below[i];

#pragma omp task firstprivate(son, into)
		*into = do_tree(son);
	}
#pragma omp taskwait
	for (int i = 0; i < node.sons; i++)
		sum += below[i];
	if (below != few)
		free(below);
	return sum;
}

static long count_tree(const struct tree_node *root)
{
	long nr = 0;

#pragma omp parallel
#pragma omp single
	nr = do_tree(*root);
	return nr;
}

const struct runtime_programs programs = { count_queens, sort_all,
					   factor_matrix, count_tree };
