/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One case through all peers, round by round: every peer once in each round,
 * starting with another peer each time, after a round that does not count.
 * Before that, peers that want a chunk size try those of the case and keep
 * the one that served them best.
 *
 * A pause before each run lets the threads of the peer before it stop
 * spinning.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench/common/clock.h"
#include "rounds.h"

#define PAUSE_NS 30000000
#define NR_TRIES 2
#define NR_PEERS 6

static const struct peer *const peers[NR_PEERS] = {
	&peer_plain,  &peer_ktask_one, &peer_ktask,
	&peer_static, &peer_openmp,    &peer_tbb,
};

static unsigned peer_threads(const struct peer *peer, unsigned threads)
{
	return peer == &peer_plain || peer == &peer_ktask_one ? 1 : threads;
}

struct sample {
	double seconds;
	double cpu_seconds;
	struct case_end end;
};

/* What one peer did in all rounds. */
struct series {
	size_t chunk;
	double *seconds;
	double *cpu_seconds;
	double *tails;
	double *mean_chunks;
};

static int run_once(const struct bench_case *c, const struct peer *peer,
		    unsigned threads, size_t chunk, struct sample *sample)
{
	uint64_t start_ns, start_cpu_ns;
	struct peer_job job;
	int error = c->prepare(c);

	if (error)
		return error;
	job = case_job(c, threads, chunk);
	clock_pause_ns(PAUSE_NS);
	start_cpu_ns = clock_cpu_ns();
	start_ns = clock_ns();
	error = peer->run(&job);
	sample->seconds = (double)(clock_ns() - start_ns) / 1e9;
	sample->cpu_seconds = (double)(clock_cpu_ns() - start_cpu_ns) / 1e9;
	if (!c->memory)
		sample->end = case_last_end();
	c->finish();
	return error;
}

/* The best of a few tries: what disturbs one only ever makes it longer. */
static int try_chunk(const struct bench_case *c, const struct peer *peer,
		     unsigned threads, size_t chunk, double *seconds)
{
	struct sample sample;

	for (int i = 0; i < NR_TRIES; i++) {
		int error = run_once(c, peer, threads, chunk, &sample);

		if (error)
			return error;
		if (i == 0 || sample.seconds < *seconds)
			*seconds = sample.seconds;
	}
	return 0;
}

static int choose_chunk(const struct bench_case *c, const struct peer *peer,
			unsigned threads, size_t *best_chunk)
{
	double best = 0, seconds;

	*best_chunk = 0;
	if (!peer->chunked)
		return 0;
	for (int i = 0; i < MAX_CHUNKS && c->chunks[i]; i++) {
		int error = try_chunk(c, peer, threads, c->chunks[i], &seconds);

		if (error)
			return error;
		if (!*best_chunk || seconds < best) {
			*best_chunk = c->chunks[i];
			best = seconds;
		}
	}
	return 0;
}

static int make_series(struct series *series, unsigned rounds)
{
	double *values = calloc(4 * rounds, sizeof(*values));

	if (!values)
		return ENOMEM;
	series->seconds = values;
	series->cpu_seconds = values + rounds;
	series->tails = values + 2 * rounds;
	series->mean_chunks = values + 3 * rounds;
	return 0;
}

static void free_series(struct series *all)
{
	for (int i = 0; i < NR_PEERS; i++)
		free(all[i].seconds);
}

static int one_round(const struct bench_case *c, struct series *all,
		     unsigned threads, int round)
{
	for (int turn = 0; turn < NR_PEERS; turn++) {
		int i = (turn + round + 1) % NR_PEERS;
		struct sample sample = { 0 };
		int error =
			run_once(c, peers[i], peer_threads(peers[i], threads),
				 all[i].chunk, &sample);

		if (error)
			return error;
		if (round < 0)
			continue;
		all[i].seconds[round] = sample.seconds;
		all[i].cpu_seconds[round] = sample.cpu_seconds;
		all[i].tails[round] = sample.end.tail_seconds;
		all[i].mean_chunks[round] = sample.end.mean_chunk_seconds;
	}
	return 0;
}

static void add_row(struct results *results, const struct bench_case *c,
		    const struct peer *peer, struct series *series)
{
	struct peer_job job = case_job(c, 1, 0);
	unsigned nr = results->rounds;
	struct row *row;

	row = results_row(results, series->seconds, nr);
	row->case_name = c->name;
	row->title = c->title;
	row->peer = peer->name;
	row->threads = peer_threads(peer, results->threads);
	row->chunk = series->chunk;
	row->chunk_bytes = c->memory ? series->chunk * BLOCK_BYTES : 0;
	row->bytes = c->memory ? job.len : 0;
	row->cpu_seconds = stats_of(series->cpu_seconds, nr).median;
	row->tail_seconds = c->memory ? -1 : stats_of(series->tails, nr).median;
	row->mean_chunk_seconds = stats_of(series->mean_chunks, nr).median;
}

int rounds_run(struct results *results, const struct bench_case *c)
{
	struct series all[NR_PEERS] = { { 0 } };
	int error = 0;

	for (int i = 0; i < NR_PEERS && !error; i++) {
		error = make_series(&all[i], results->rounds);
		if (!error)
			error = choose_chunk(
				c, peers[i],
				peer_threads(peers[i], results->threads),
				&all[i].chunk);
	}
	/* The round that does not count has number -1. */
	for (int round = -1; round < (int)results->rounds && !error; round++)
		error = one_round(c, all, results->threads, round);
	for (int i = 0; i < NR_PEERS && !error; i++)
		add_row(results, c, peers[i], &all[i]);
	free_series(all);
	return error;
}
