/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The programs in C++.  @Join is what waits: run(f) makes a task, wait() is
 * until those are done.
 */
#ifndef BENCH_PROGRAMS_FORKS_HPP
#define BENCH_PROGRAMS_FORKS_HPP

#include <numeric>
#include <vector>

#include "bench/programs/programs.h"

namespace forks
{

template <typename Join> long queens(const struct queens &here)
{
	long found[QUEENS_MOST];
	int nr = 0;

	if (here.rows <= QUEENS_ALONE)
		return queens_alone(&here, nullptr);
	Join join;
	for (unsigned left = queens_free(&here); left; left &= left - 1) {
		struct queens next = queens_put(&here, left & -left);
		long *into = &found[nr++];

		join.run([=] { *into = queens<Join>(next); });
	}
	join.wait();
	return std::accumulate(found, found + nr, 0l);
}

template <typename Join> void merge(const merge_part &part)
{
	merge_part halves[2];

	if (part.nr_a + part.nr_b <= MERGE_ALONE)
		return merge_alone(&part);
	merge_split(&part, halves);
	Join join;
	for (auto &half : halves)
		join.run([&half] { merge<Join>(half); });
	join.wait();
}

template <typename Join> void sort(const sort_part &part)
{
	sort_part halves[2];
	merge_part both;

	if (part.nr <= SORT_ALONE)
		return sort_alone(&part);
	sort_split(&part, halves, &both);
	Join join;
	for (auto &half : halves)
		join.run([&half] { sort<Join>(half); });
	join.wait();
	merge<Join>(both);
}

template <typename Join> void factor_edges(const lu_matrix *matrix, int at)
{
	Join join;

	for (int i = at + 1; i < matrix->nr; i++) {
		if (*lu_block(matrix, at, i))
			join.run([=] { lu_right(matrix, at, i); });
		if (*lu_block(matrix, i, at))
			join.run([=] { lu_below(matrix, at, i); });
	}
	join.wait();
}

template <typename Join> void factor_inner(const lu_matrix *matrix, int at)
{
	Join join;

	for (int i = at + 1; i < matrix->nr; i++)
		for (int j = at + 1; j < matrix->nr; j++)
			if (*lu_block(matrix, i, at) &&
			    *lu_block(matrix, at, j))
				join.run([=] { lu_inner(matrix, at, i, j); });
	join.wait();
}

template <typename Join> void factor(const lu_matrix *matrix)
{
	for (int at = 0; at < matrix->nr; at++) {
		lu_diagonal(matrix, at);
		factor_edges<Join>(matrix, at);
		factor_inner<Join>(matrix, at);
	}
}

/* The root has thousands of sons, the others few. */
template <typename Join> long tree(const tree_node &node)
{
	long few[TREE_SONS];
	std::vector<long> many(node.sons > TREE_SONS ? node.sons : 0);
	long *below = many.empty() ? few : many.data();
	Join join;

	for (int i = 0; i < node.sons; i++) {
		tree_node son = tree_son(&node, i);
		long *into = &below[i];

		join.run([=] { *into = tree<Join>(son); });
	}
	join.wait();
	return std::accumulate(below, below + node.sons, 1l);
}

} /* namespace forks */

#endif /* BENCH_PROGRAMS_FORKS_HPP */
