/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What it costs to start and end a job, for each peer with threads:
 *
 *	any		two empty chunks, whoever does them
 *	rendezvous	two chunks, neither of which ends before both have begun,
 *			so that the second thread's arrival is measured
 *
 * both back to back, and after a pause in which threads fall asleep.  Then
 * what libktask adds to a job that is too small to be split.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ktask/ktask.h>

#include "bench/common/clock.h"
#include "rounds.h"

#define NR_WARM 200
#define NR_JOBS 4000
#define NR_PAUSED_JOBS 300
#define PAUSE_NS 2000000
#define SETTLE_NS 20000000
/* A rendezvous that takes longer did not happen: one thread got both. */
#define MISSED_NS 20000000
#define SMALL_JOBS 2000
#define SMALL_ROUNDS 61

static const struct peer *const peers[] = { &peer_ktask, &peer_static,
					    &peer_openmp, &peer_tbb };

static void do_nothing(size_t start, size_t end, void *arg)
{
}

static atomic_uint nr_arrived;

static void meet_thread(size_t start, size_t end, void *arg)
{
	uint64_t start_ns = clock_ns();

	atomic_fetch_add(&nr_arrived, (unsigned)(end - start));
	while (atomic_load(&nr_arrived) < 2)
		if (clock_ns() - start_ns > MISSED_NS)
			break;
}

static double job_seconds(const struct peer *peer, peer_work work)
{
	struct peer_job job = {
		.nr_units = 2, .chunk_units = 1, .threads = 2, .work = work
	};
	uint64_t start_ns;

	atomic_store(&nr_arrived, 0);
	start_ns = clock_ns();
	peer->run(&job);
	return (double)(clock_ns() - start_ns) / 1e9;
}

static double median_us(const struct peer *peer, peer_work work, unsigned nr,
			uint64_t pause_ns)
{
	static double samples[NR_JOBS];

	clock_pause_ns(SETTLE_NS);
	for (int i = 0; i < NR_WARM && !pause_ns; i++)
		job_seconds(peer, work);
	for (unsigned i = 0; i < nr; i++) {
		if (pause_ns)
			clock_pause_ns(pause_ns);
		samples[i] = job_seconds(peer, work);
	}
	return 1e6 * stats_of(samples, nr).median;
}

static void empty_jobs(struct results *results, const struct peer *peer)
{
	results_figure(results, "empty_any_us",
		       "empty job, any thread, back to back", peer->name,
		       median_us(peer, do_nothing, NR_JOBS, 0), "us");
	results_figure(results, "empty_rendezvous_us",
		       "empty job, both threads, back to back", peer->name,
		       median_us(peer, meet_thread, NR_JOBS, 0), "us");
	results_figure(results, "empty_any_paused_us",
		       "empty job, any thread, after 2 ms", peer->name,
		       median_us(peer, do_nothing, NR_PAUSED_JOBS, PAUSE_NS),
		       "us");
	results_figure(results, "empty_rendezvous_paused_us",
		       "empty job, both threads, after 2 ms", peer->name,
		       median_us(peer, meet_thread, NR_PAUSED_JOBS, PAUSE_NS),
		       "us");
}

static int one_unit(void *start, void *end, void *arg)
{
	return 0;
}

static double small_round_ns(bool through_ktask)
{
	/* Volatile: the compiler must not see through the call. */
	ktask_thread_func volatile func = one_unit;
	DEFINE_KTASK_CTL(ctl, one_unit, NULL, 64);
	uint64_t start_ns = clock_ns();

	for (int i = 0; i < SMALL_JOBS; i++) {
		if (through_ktask)
			ktask_run(&ctl, 64, &ctl);
		else
			func(&ctl, &ctl + 1, NULL);
	}
	return (double)(clock_ns() - start_ns) / SMALL_JOBS;
}

static double small_job_ns(bool through_ktask)
{
	double samples[SMALL_ROUNDS];

	for (int i = 0; i < SMALL_ROUNDS; i++)
		samples[i] = small_round_ns(through_ktask);
	return stats_of(samples, SMALL_ROUNDS).median;
}

int latency_run(struct results *results)
{
	for (size_t i = 0; i < sizeof(peers) / sizeof(*peers); i++)
		empty_jobs(results, peers[i]);
	results_figure(results, "too_small_to_split_ns",
		       "job too small to split, more than the call", NULL,
		       small_job_ns(true) - small_job_ns(false), "ns");
	return 0;
}
