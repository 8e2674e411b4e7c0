/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Those cases that make tasks, by the runtime's C++ face.
 */
#include <cstdlib>

#include <ktask/runtime.hpp>

#include "bench/tasks/cases.h"

namespace
{

void start(int threads)
{
	ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = threads;
	if (!getenv("BENCH_TASKS_SOON"))
		options.flags = KTRT_UMT_FIRST;
	if (ktrt_start(&options))
		abort();
}

void stop()
{
	ktrt_stop();
}

template <typename F> void many(int nr, F body)
{
	ktrt::run([=] {
		for (int i = 0; i < nr; i++)
			ktrt::spawn(body);
		ktrt::wait();
	});
}

void empty(int nr)
{
	many(nr, [] { task_nothing(); });
}

void makers(int nr, int threads)
{
	for (int i = 0; i < threads; i++)
		ktrt::spawn([=] {
			for (int j = 0; j < nr / threads; j++)
				ktrt::spawn([] { task_nothing(); });
			ktrt::wait();
		});
	ktrt::wait();
}

void chain(int nr)
{
	ktrt::run([=] {
		int datum;

		for (int i = 0; i < nr; i++)
			ktrt::spawn([] { task_nothing(); }, ktrt::inout(datum));
		ktrt::wait();
	});
}

void fans(int nr)
{
	ktrt::run([=] {
		int datum;

		for (int i = 0; i < nr; i++) {
			ktrt::spawn([] { task_nothing(); }, ktrt::inout(datum));
			for (int j = 0; j < 16; j++)
				ktrt::spawn([] { task_nothing(); },
					    ktrt::in(datum));
		}
		ktrt::wait();
	});
}

long do_fib(int n)
{
	long one, two;

	if (n < 2)
		return n;
	ktrt::spawn([&one, n] { one = do_fib(n - 1); });
	ktrt::spawn([&two, n] { two = do_fib(n - 2); });
	ktrt::wait();
	return one + two;
}

long fib(int n)
{
	long result;

	ktrt::run([&] { result = do_fib(n); });
	return result;
}

void work(int nr, int ns)
{
	many(nr, [ns] { task_work(ns); });
}

void outside(int nr, int ns)
{
	for (int i = 0; i < nr; i++)
		ktrt::spawn([ns] { task_work(ns); });
	ktrt::wait();
}

void block(int nr)
{
	many(nr, [] { task_block(); });
}

void wake()
{
	ktrt::spawn([] { task_stamp(); });
	ktrt::wait();
}

ktrt::graph *made;

void make_graph(const struct task_graph *graph)
{
	int points[BEFORE_MAX];

	made = new ktrt::graph;
	for (int i = 0; i < graph->steps * graph->width; i++) {
		int step = i / graph->width;
		int nr = step ? graph->before(graph->width, step,
					      i % graph->width, points)
			      : 0;

		made->add([=] { task_point(i); });
		while (nr--)
			made->edge((step - 1) * graph->width + points[nr], i);
	}
}

void run_graph(const struct task_graph *)
{
	ktrt::run([] { made->run(); });
}

void loop(size_t nr)
{
	ktrt::parallel_for(size_t(0), nr, [=](size_t i) { task_index(i, nr); });
}

} /* namespace */

extern "C" {
extern const struct runtime_cases cases;
const struct runtime_cases cases = {
	start, stop,  empty, makers, chain,   fans,	  fib,
	work,  block, wake,  wake,   nullptr, make_graph, run_graph,
	loop,  &programs, nullptr, outside, nullptr
};
}
