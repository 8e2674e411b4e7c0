/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The programs by the task runtime.  What a task is to do stands in its maker's
 * frame, which stays until the maker has waited.
 */
#include <errno.h>
#include <stdlib.h>

#include <ktask/runtime.h>

#include "bench/tasks/cases.h"

/* ---- queens ---- */

struct queens_task {
	struct queens here;
	long found;
};

static int do_queens(void *arg)
{
	struct queens_task *this = arg, below[QUEENS_MOST];
	int nr = 0;

	if (this->here.rows <= QUEENS_ALONE) {
		this->found = queens_alone(&this->here, NULL);
		return 0;
	}
	for (unsigned left = queens_free(&this->here); left; left &= left - 1) {
		below[nr].here = queens_put(&this->here, left & -left);
		ktrt_spawn(do_queens, &below[nr++]);
	}
	ktrt_wait();
	this->found = 0;
	while (nr--)
		this->found += below[nr].found;
	return 0;
}

static long count_queens(const struct queens *top)
{
	struct queens_task task = { *top, 0 };

	ktrt_run(do_queens, &task);
	return task.found;
}

/* ---- sort ---- */

static int do_merge(void *arg)
{
	struct merge_part *this = arg, halves[2];

	if (this->nr_a + this->nr_b <= MERGE_ALONE) {
		merge_alone(this);
		return 0;
	}
	merge_split(this, halves);
	ktrt_spawn(do_merge, &halves[0]);
	ktrt_spawn(do_merge, &halves[1]);
	return ktrt_wait();
}

static int do_sort(void *arg)
{
	struct sort_part *this = arg, halves[2];
	struct merge_part merge;

	if (this->nr <= SORT_ALONE) {
		sort_alone(this);
		return 0;
	}
	sort_split(this, halves, &merge);
	ktrt_spawn(do_sort, &halves[0]);
	ktrt_spawn(do_sort, &halves[1]);
	ktrt_wait();
	return do_merge(&merge);
}

static void sort_all(const struct sort_part *all)
{
	ktrt_run(do_sort, (void *)all);
}

/* ---- factors ---- */

struct lu_step {
	const struct lu_matrix *matrix;
	int at, row, column;
};

static int do_right(void *arg)
{
	const struct lu_step *this = arg;

	lu_right(this->matrix, this->at, this->column);
	return 0;
}

static int do_below(void *arg)
{
	const struct lu_step *this = arg;

	lu_below(this->matrix, this->at, this->row);
	return 0;
}

static int do_inner(void *arg)
{
	const struct lu_step *this = arg;

	lu_inner(this->matrix, this->at, this->row, this->column);
	return 0;
}

static void spawn_step(ktrt_func func, struct lu_step step)
{
	struct lu_step *own = ktrt_spawn_begin(func, sizeof(step), 0);

	if (!own) {
		ktrt_spawn_copy(func, &step, sizeof(step));
		return;
	}
	*own = step;
	ktrt_spawn_end(func, own);
}

static int do_factor(void *arg)
{
	const struct lu_matrix *matrix = arg;

	for (int at = 0; at < matrix->nr; at++) {
		lu_diagonal(matrix, at);
		for (int i = at + 1; i < matrix->nr; i++) {
			struct lu_step step = { matrix, at, i, i };

			if (*lu_block(matrix, at, i))
				spawn_step(do_right, step);
			if (*lu_block(matrix, i, at))
				spawn_step(do_below, step);
		}
		ktrt_wait();
		for (int i = at + 1; i < matrix->nr; i++)
			for (int j = at + 1; j < matrix->nr; j++)
				if (*lu_block(matrix, i, at) &&
				    *lu_block(matrix, at, j))
					spawn_step(do_inner,
						   (struct lu_step){ matrix, at,
								     i, j });
		ktrt_wait();
	}
	return 0;
}

static void factor_matrix(const struct lu_matrix *matrix)
{
	ktrt_run(do_factor, (void *)matrix);
}

/* ---- tree ---- */

struct tree_task {
	struct tree_node node;
	long nr;
};

/* The root has thousands of sons, the others few. */
static int do_tree(void *arg)
{
	struct tree_task *this = arg, few[TREE_SONS], *sons = few;
	int nr = this->node.sons;

	if (nr > TREE_SONS)
		sons = malloc((size_t)nr * sizeof(*sons));
	if (!sons)
		return -ENOMEM;
	for (int i = 0; i < nr; i++) {
		sons[i].node = tree_son(&this->node, i);
		ktrt_spawn(do_tree, &sons[i]);
	}
	ktrt_wait();
	this->nr = 1;
	while (nr--)
		this->nr += sons[nr].nr;
	if (sons != few)
		free(sons);
	return 0;
}

static long count_tree(const struct tree_node *root)
{
	struct tree_task task = { *root, 0 };

	ktrt_run(do_tree, &task);
	return task.nr;
}

const struct runtime_programs programs = { count_queens, sort_all,
					   factor_matrix, count_tree };
