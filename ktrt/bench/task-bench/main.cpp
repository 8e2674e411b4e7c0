/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Task Bench (E. Slaughter et al., SC 2020) by the task runtime.  The graphs, the
 * kernels, the options and the checks of every input are its own: this is compiled
 * with its core, which is not here (make bench-task-bench TASK_BENCH=DIR).
 *
 *	task-bench-ktrt [-workers N] [-once] OPTIONS OF TASK BENCH
 *
 * Each task is told what it reads and writes: points of the step before, and its own.
 * -once: all tasks are nodes of one graph, which is made before the clock starts; so
 * it is no measure of making them.
 */
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <ktask/runtime.hpp>

#include "core.h"

namespace
{

/* Of a graph what its points wrote, by turns of steps; each point apart. */
class fields {
    public:
	explicit fields(const TaskGraph &graph)
		: turns_(graph.nb_fields > 1 ? graph.nb_fields : 2),
		  width_(graph.max_width),
		  bytes_((graph.output_bytes_per_task + 63) / 64 * 64),
		  memory_(static_cast<char *>(std::aligned_alloc(
				  64, turns_ * width_ * bytes_)),
			  std::free)
	{
		if (!memory_)
			throw std::bad_alloc();
	}
	char *at(long step, long point) const
	{
		return memory_.get() +
		       ((step % turns_) * width_ + point) * bytes_;
	}

    private:
	long turns_, width_;
	std::size_t bytes_;
	std::unique_ptr<char, decltype(&std::free)> memory_;
};

/* For kernels that use memory: as much for each thread. */
class scratch {
    public:
	void prepare(const App &app)
	{
		for (const auto &graph : app.graphs)
			if (graph.scratch_bytes_per_task > bytes_)
				bytes_ = graph.scratch_bytes_per_task;
		for (int i = ktrt_thread_indices(); bytes_ && i > 0; i--) {
			memory_.emplace_back(bytes_ / sizeof(long) + 1);
			TaskGraph::prepare_scratch(
				reinterpret_cast<char *>(memory_.back().data()),
				bytes_);
		}
	}
	char *mine()
	{
		return bytes_ ? reinterpret_cast<char *>(
					memory_[ktrt_thread_index()].data())
			      : nullptr;
	}

    private:
	std::size_t bytes_ = 0;
	std::vector<std::vector<long>> memory_;
};

scratch scratch_memory;

/* The points before, as intervals whose ends both count, called back with each. */
template <typename F>
void each_before(const TaskGraph &graph, long step, long point, F f)
{
	if (!step)
		return;
	long set = graph.dependence_set_at_timestep(step);
	long first = graph.offset_at_timestep(step - 1);
	long end = first + graph.width_at_timestep(step - 1);
	for (const auto &interval : graph.dependencies(set, point))
		for (long i = interval.first; i <= interval.second; i++)
			if (i >= first && i < end)
				f(i);
}

void do_point(const TaskGraph &graph, const fields &data, long step, long point)
{
	std::vector<const char *> inputs;

	each_before(graph, step, point,
		    [&](long i) { inputs.push_back(data.at(step - 1, i)); });
	std::vector<std::size_t> bytes(inputs.size(),
				       graph.output_bytes_per_task);
	graph.execute_point(step, point, data.at(step, point),
			    graph.output_bytes_per_task, inputs.data(),
			    bytes.data(), inputs.size(), scratch_memory.mine(),
			    graph.scratch_bytes_per_task);
}

/* make(f, deps) for each task, in an order in which they could run. */
template <typename Make>
void make_tasks(const App &app, const std::vector<fields> &data, long step,
		std::vector<ktrt::dep> &deps, Make make)
{
	for (std::size_t i = 0; i < app.graphs.size(); i++) {
		const TaskGraph &graph = app.graphs[i];
		const fields &own = data[i];
		long first = graph.offset_at_timestep(step);

		if (step >= graph.timesteps)
			continue;
		for (long point = first;
		     point < first + graph.width_at_timestep(step); point++) {
			deps.assign(1, ktrt::out(*own.at(step, point)));
			each_before(graph, step, point, [&](long before) {
				deps.push_back(
					ktrt::in(*own.at(step - 1, before)));
			});
			make([&graph, &own, step, point] {
				do_point(graph, own, step, point);
			});
		}
	}
}

double time_of(const std::chrono::steady_clock::time_point &start)
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now() -
					     start)
		.count();
}

long count_steps(const App &app)
{
	long most = 0;

	for (const auto &graph : app.graphs)
		most = graph.timesteps > most ? graph.timesteps : most;
	return most;
}

/* Seconds; the tasks are made by one. */
double run_spawned(const App &app, const std::vector<fields> &data)
{
	auto start = std::chrono::steady_clock::now();

	ktrt::run([&] {
		std::vector<ktrt::dep> deps;

		for (long step = 0; step < count_steps(app); step++)
			make_tasks(app, data, step, deps, [&](auto f) {
				ktrt::spawn(f, deps);
			});
		ktrt::wait();
	});
	return time_of(start);
}

double run_once_made(const App &app, const std::vector<fields> &data)
{
	std::vector<ktrt::dep> deps;
	ktrt::graph made;

	for (long step = 0; step < count_steps(app); step++)
		make_tasks(app, data, step, deps,
			   [&](auto f) { made.add(f, deps); });
	auto start = std::chrono::steady_clock::now();
	ktrt::run([&] { made.run(); });
	return time_of(start);
}

/* Takes the options that are ours. */
int take_options(int argc, char **argv, unsigned &workers, bool &is_once)
{
	int nr = 1;

	for (int i = 1; i < argc; i++)
		if (!std::strcmp(argv[i], "-once"))
			is_once = true;
		else if (!std::strcmp(argv[i], "-workers") && i + 1 < argc)
			workers = std::atoi(argv[++i]);
		else
			argv[nr++] = argv[i];
	return nr;
}

} /* namespace */

int main(int argc, char **argv)
{
	unsigned workers = 0;
	bool is_once = false;

	argc = take_options(argc, argv, workers, is_once);
	App app(argc, argv);
	if (app.verbose)
		app.display();
	ktrt::runtime runtime(workers, KTRT_UMT_FIRST);
	std::vector<fields> data;
	for (const auto &graph : app.graphs)
		data.emplace_back(graph);
	scratch_memory.prepare(app);
	app.report_timing(is_once ? run_once_made(app, data)
				  : run_spawned(app, data));
}
