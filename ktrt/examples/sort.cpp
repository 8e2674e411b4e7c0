/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fork and join from C++: sorts numbers by halves; an exception in a task comes
 * out where it is waited for.
 *
 *	c++ -o sort sort.cpp $(pkg-config --cflags --libs ktrt)
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <ktask/runtime.hpp>

static void sort_range(int *first, int *last)
{
	int *middle = first + (last - first) / 2;

	if (last - first < 5000) {
		std::sort(first, last);
		return;
	}
	ktrt::spawn([=] { sort_range(first, middle); });
	ktrt::spawn([=] { sort_range(middle, last); });
	ktrt::wait();
	std::inplace_merge(first, middle, last);
}

int main()
{
	ktrt::runtime runtime;
	std::vector<int> numbers(1000000);

	for (int &number : numbers)
		number = rand();
	ktrt::run([&] {
		sort_range(numbers.data(), numbers.data() + numbers.size());
	 });
	if (!std::is_sorted(numbers.begin(), numbers.end()))
		return 1;
	try {
		ktrt::spawn([] { throw std::runtime_error("as it should"); });
		ktrt::wait();
	} catch (const std::runtime_error &error) {
		std::printf("sorted; caught: %s\n", error.what());
		return 0;
	}
	return 1;
}
