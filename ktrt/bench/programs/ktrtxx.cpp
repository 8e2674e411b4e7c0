/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The programs by the runtime's C++ face.
 */
#include <ktask/runtime.hpp>

#include "bench/programs/forks.hpp"
#include "bench/tasks/cases.h"

namespace
{

struct children {
	template <typename F> void run(F &&f)
	{
		ktrt::spawn(std::forward<F>(f));
	}
	void wait()
	{
		ktrt::wait();
	}
};

long count_queens(const struct queens *top)
{
	long found = 0;

	ktrt::run([&] { found = forks::queens<children>(*top); });
	return found;
}

void sort_all(const sort_part *all)
{
	ktrt::run([=] { forks::sort<children>(*all); });
}

void factor(const lu_matrix *matrix)
{
	ktrt::run([=] { forks::factor<children>(matrix); });
}

long count_tree(const tree_node *root)
{
	long nr = 0;

	ktrt::run([&] { nr = forks::tree<children>(*root); });
	return nr;
}

} /* namespace */

extern "C" {
const struct runtime_programs programs = { count_queens, sort_all, factor,
					   count_tree };
}
