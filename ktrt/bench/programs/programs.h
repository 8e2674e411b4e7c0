/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that fork and join, as the Barcelona OpenMP Tasks Suite has them
 * (A. Duran et al., ICPP 2009), for each runtime of `make bench-tasks`: counting
 * queens, a mergesort whose merges are parallel too, factors of a sparse matrix
 * of blocks, and counting the nodes of an unbalanced tree.  What one task does
 * alone stands in kernels.c; who makes which tasks is each runtime's; verified.c
 * runs a program, times it and compares its result with that of one thread.
 */
#ifndef BENCH_PROGRAMS_H
#define BENCH_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- queens: a task for each place in a row ---- */

#define QUEENS_MOST 16
/* With no more rows than these left there are no tasks. */
#define QUEENS_ALONE 4

/* A row's free places are the bits of @all that no queen above it attacks. */
struct queens {
	unsigned all, columns, left, right;
	int rows; /* that are left */
};

unsigned queens_free(const struct queens *here);
struct queens queens_put(const struct queens *here, unsigned bit);
/* How many solutions; adds the tasks that they would be to @nr_tasks, or NULL. */
long queens_alone(const struct queens *here, long *nr_tasks);

/* ---- sort ---- */

#define SORT_ALONE 2048
#define MERGE_ALONE 4096

/* @nr numbers at @data, sorted there or to @scratch. */
struct sort_part {
	uint32_t *data, *scratch;
	size_t nr;
	bool to_scratch;
};

/* Both are sorted; @a is the longer. */
struct merge_part {
	const uint32_t *a, *b;
	size_t nr_a, nr_b;
	uint32_t *to;
};

void sort_alone(const struct sort_part *part);
void merge_alone(const struct merge_part *part);
/* The halves of a part, each the other way round, and their merge. */
void sort_split(const struct sort_part *part, struct sort_part halves[2],
		struct merge_part *merge);
void merge_split(const struct merge_part *part, struct merge_part halves[2]);

/* ---- factors: L and U of a matrix whose blocks may be absent ---- */

#define LU_EDGE 16

struct lu_matrix {
	int nr; /* blocks in a row */
	double **blocks; /* row by row; NULL: all zero */
	double *space; /* of all blocks, also for those that come to be */
};

/* Where a block lies, if it is there: in no two at the same place of a page. */
#define LU_SPACE (LU_EDGE * LU_EDGE + 8)

static inline double **lu_block(const struct lu_matrix *matrix, int row,
				int column)
{
	return &matrix->blocks[row * matrix->nr + column];
}

static inline double *lu_space(const struct lu_matrix *matrix, int row,
			       int column)
{
	return &matrix->space[(row * matrix->nr + column) * LU_SPACE];
}

/* The steps for diagonal block @at: itself; then those right of it and below it
 * that are there; then what both change. */
void lu_diagonal(const struct lu_matrix *matrix, int at);
void lu_right(const struct lu_matrix *matrix, int at, int column);
void lu_below(const struct lu_matrix *matrix, int at, int row);
void lu_inner(const struct lu_matrix *matrix, int at, int row, int column);

/* ---- tree: how many sons a node has depends on a hash of its way there ---- */

struct tree_node {
	uint64_t hash;
	int sons;
};

#define TREE_SONS 5

struct tree_node tree_son(const struct tree_node *node, int which);
long tree_alone(const struct tree_node *node);

/* ---- what a runtime does ---- */

struct runtime_programs {
	long (*queens)(const struct queens *top);
	void (*sort)(const struct sort_part *all);
	void (*factor)(const struct lu_matrix *matrix);
	long (*tree)(const struct tree_node *root);
};

#define NO_PROGRAM (-3.0)

/*
 * Run the program of that name, small or not, and compare its result.
 *
 * Return: nanoseconds a task (of sort: a number), which may be 0; NO_PROGRAM: there is no
 * such program; another number below 0: the result is wrong.
 */
double program_run(const struct runtime_programs *programs, const char *name,
		   bool is_small);

#ifdef __cplusplus
}
#endif

#endif /* BENCH_PROGRAMS_H */
