/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bench-peers: libktask and its peers on the same work in one run.
 *
 * Owns the options and the order of the parts.  Wants an idle machine: it
 * does not wait for one, but says how busy others were.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/common/others.h"
#include "rounds.h"

static const char usage[] =
	"usage: bench-peers [options]\n\n"
	"  --size MIB        memory to populate and fill (default 1024)\n"
	"  --rounds N        rounds that count (default 15)\n"
	"  --threads N       for all peers (default: one for each CPU)\n"
	"  --only WORD       only cases with that word in their name; also\n"
	"                    latency, idle, vm-start\n"
	"  --shim FILE       libktask-preload.so, for starting QEMU\n"
	"  --idle FILE       the program that measures an idle pool\n"
	"  --output FILE     write JSON there as well\n"
	"  --json            print JSON and no table\n";

struct settings {
	unsigned long mib;
	unsigned long rounds;
	unsigned long threads;
	const char *only;
	const char *shim;
	const char *idle;
	const char *output;
	int json;
};

static const struct option options[] = {
	{ "size", required_argument, NULL, 's' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "threads", required_argument, NULL, 't' },
	{ "only", required_argument, NULL, 'o' },
	{ "shim", required_argument, NULL, 'p' },
	{ "idle", required_argument, NULL, 'i' },
	{ "output", required_argument, NULL, 'f' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static unsigned long parse_number(const char *text, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	return *text < '0' || *text > '9' || *end || value > max ? 0 : value;
}

static int usage_error(const char *what)
{
	fprintf(stderr, "ktask: comparing peers: %s\n%s", what, usage);
	return 2;
}

/* 0 to go on, otherwise the exit status plus one. */
static int parse_options(struct settings *set, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			set->mib = parse_number(optarg, 1ul << 24);
		else if (option == 'r')
			set->rounds = parse_number(optarg, 1000);
		else if (option == 't')
			set->threads = parse_number(optarg, 1000);
		else if (option == 'o')
			set->only = optarg;
		else if (option == 'p')
			set->shim = optarg;
		else if (option == 'i')
			set->idle = optarg;
		else if (option == 'f')
			set->output = optarg;
		else if (option == 'j')
			set->json = 1;
		else if (option == 'h')
			return fputs(usage, stdout) < 0 ? 2 : 1;
		else
			return 1 + usage_error("unknown option");
	}
	if (optind < argc || set->mib < 2 || !set->rounds || !set->threads)
		return 1 + usage_error("wrong value");
	return 0;
}

static int is_wanted(const struct settings *set, const char *name)
{
	return !set->only || strstr(name, set->only);
}

static const struct peer *const peers[] = { &peer_ktask, &peer_static,
					    &peer_openmp, &peer_tbb };
#define NR_PEERS (sizeof(peers) / sizeof(*peers))

static int start_peers(unsigned threads)
{
	int error = 0;

	for (size_t i = 0; i < NR_PEERS && !error; i++)
		error = peers[i]->start(threads);
	return error;
}

static void stop_peers(void)
{
	for (size_t i = 0; i < NR_PEERS; i++)
		peers[i]->stop();
}

static int run_cases(const struct settings *set, struct results *results)
{
	int error = cases_init(results->size_bytes);

	if (error)
		return error;
	for (unsigned i = 0; i < nr_bench_cases && !error; i++)
		if (is_wanted(set, bench_cases[i].name))
			error = rounds_run(results, &bench_cases[i]);
	cases_exit();
	return error;
}

/* Latency is that of two threads, on any machine. */
static int run_latency(struct results *results)
{
	int error = start_peers(2);

	if (!error)
		error = latency_run(results);
	stop_peers();
	return error;
}

static int run_all(const struct settings *set, struct results *results)
{
	int error = start_peers(results->threads);

	if (!error)
		error = run_cases(set, results);
	stop_peers();
	if (!error && is_wanted(set, "latency"))
		error = run_latency(results);
	if (!error && is_wanted(set, "idle"))
		error = idle_run(results, set->idle);
	if (!error && (is_wanted(set, "vm-start")))
		error = qemu_run(results, set->shim);
	return error;
}

int main(int argc, char **argv)
{
	struct settings set = {
		.mib = 1024,
		.rounds = 15,
		.threads = (unsigned long)sysconf(_SC_NPROCESSORS_ONLN),
	};
	static struct results results;
	int status = parse_options(&set, argc, argv), error;
	struct others before = others_now();

	if (status)
		return status - 1;
	results.size_bytes = set.mib << 20;
	results.rounds = (unsigned)set.rounds;
	results.threads = (unsigned)set.threads;
	error = run_all(&set, &results);
	results.others_cpus = others_cpus(&before);
	if (!error && !set.json)
		report_print(&results);
	if (!error && set.json)
		error = report_json(&results, "-");
	if (!error && set.output)
		error = report_json(&results, set.output);
	if (error)
		fprintf(stderr, "ktask: comparing peers: %s\n",
			strerror(error));
	results_free(&results);
	return error ? 1 : 0;
}
