/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * oneTBB, parallel_for.  The grain size is the chunk and the partitioner is
 * the default one, which splits further only where threads run dry; a chunk
 * of 0 units leaves the grain to it as well.
 */
#include <cerrno>
#include <memory>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "peer.h"

namespace
{

std::unique_ptr<oneapi::tbb::global_control> limit;
std::unique_ptr<oneapi::tbb::task_arena> arena;

int start(unsigned threads)
{
	using control = oneapi::tbb::global_control;

	try {
		limit = std::make_unique<control>(
			control::max_allowed_parallelism, threads);
		arena = std::make_unique<oneapi::tbb::task_arena>(threads);
		arena->initialize();
	} catch (const std::bad_alloc &) {
		return ENOMEM;
	}
	return 0;
}

void share_out(const peer_job *job)
{
	using range = oneapi::tbb::blocked_range<size_t>;
	size_t grain = job->chunk_units ? job->chunk_units : 1;

	oneapi::tbb::parallel_for(
		range(0, job->nr_units, grain), [job](const range &part) {
			job->work(part.begin(), part.end(), job->arg);
		});
}

int run(const peer_job *job)
{
	arena->execute([job] { share_out(job); });
	return 0;
}

void stop()
{
	arena.reset();
	limit.reset();
}

} // namespace

extern "C" const struct peer peer_tbb = {
	"oneTBB parallel_for", 1, start, run, stop,
};
