/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask bench: how much faster is an operation with more threads?
 *
 * This file owns the options and their defaults; bench_rounds.c measures,
 * bench_report.c prints.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "cmd.h"
#include "interrupt.h"
#include "memory.h"
#include "plot.h"
#include "say.h"
#include "size.h"

#define DEFAULT_BYTES (8ull << 30)
#define LEAST_DEFAULT_BYTES (64ull << 20)

static const char usage[] =
	"usage: ktask bench [options] OPERATION\n\n"
	"Measure OPERATION with several thread counts and print a table.\n\n"
	"  --threads LIST    thread counts, as 1-4 or 1,2,8 (default: 1 to "
	"the\n"
	"                    number of CPUs)\n"
	"  --size SIZE       memory to work on, as 512M or 8G (default: 8G "
	"where\n"
	"                    that is a third of the available memory, else "
	"less)"
	"\n"
	"  --runs N          counted runs of each thread count (default: 5)\n"
	"  --pages KIND      huge, small, or default (the system's choice)\n"
	"  --json[=FILE]     print one JSON object instead of the table, or "
	"write\n"
	"                    it to FILE beside the table\n"
	"  --plot FILE       draw the speedup into FILE (.svg or .png)\n"
	"  --help            print this\n\n"
	"Operations:\n";

enum {
	OPT_HELP = 256,
	OPT_JSON,
	OPT_PAGES,
	OPT_PLOT,
	OPT_RUNS,
	OPT_SIZE,
	OPT_THREADS
};

static const struct option options[] = {
	{ "help", no_argument, NULL, OPT_HELP },
	{ "json", optional_argument, NULL, OPT_JSON },
	{ "pages", required_argument, NULL, OPT_PAGES },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "runs", required_argument, NULL, OPT_RUNS },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ 0 },
};

struct settings {
	bool help;
	bool json;
	const char *json_path; /* NULL: standard output */
	const char *plot_path;
	int pages; /* -1: as the work has it */
	unsigned runs;
	uint64_t size_bytes; /* 0: default */
	int nr_threads; /* 0: default */
	unsigned threads[MAX_THREADS];
};

static int print_help(void)
{
	struct bench_work work;
	unsigned i;

	fputs(usage, stdout);
	for (i = 0; !bench_work_at(i, &work); i++)
		printf("  %-17s %s\n", work.name, work.summary);
	return 0;
}

static int parse_pages(const char *text)
{
	if (!strcmp(text, "default"))
		return PAGES_DEFAULT;
	if (!strcmp(text, "small"))
		return PAGES_SMALL;
	if (!strcmp(text, "huge"))
		return PAGES_HUGE;
	return -1;
}

static int parse_option(struct settings *set, int option)
{
	int error;

	switch (option) {
	case OPT_HELP:
		set->help = true;
		return 0;
	case OPT_JSON:
		set->json = true;
		set->json_path = optarg;
		return 0;
	case OPT_PAGES:
		set->pages = parse_pages(optarg);
		if (set->pages >= 0)
			return 0;
		return say_usage("bench",
				 "--pages '%s': not huge, small or "
				 "default",
				 optarg);
	case OPT_PLOT:
		set->plot_path = optarg;
		if (plot_suffix_ok(optarg))
			return 0;
		return say_usage("bench",
				 "--plot '%s': the name must end in "
				 ".svg or .png",
				 optarg);
	case OPT_RUNS:
		error = count_parse(optarg, &set->runs);
		if (!error)
			return 0;
		return say_usage("bench",
				 "--runs '%s': not a number from 1 "
				 "to %d",
				 optarg, MAX_THREADS);
	case OPT_SIZE:
		error = size_parse(optarg, &set->size_bytes);
		if (!error)
			return 0;
		return say_usage("bench", "--size '%s': %s", optarg,
				 size_why(error));
	default:
		set->nr_threads = list_parse(optarg, set->threads);
		if (set->nr_threads > 0)
			return 0;
		return say_usage("bench",
				 "--threads '%s': not a list as 1-4 "
				 "or 1,2,8",
				 optarg);
	}
}

static int parse(struct settings *set, int argc, char **argv)
{
	int option, status;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (option == 'h')
			option = OPT_HELP;
		if (option == '?' || option == ':')
			return say_option("bench", argv, option);
		status = parse_option(set, option);
		if (status)
			return status;
	}
	if (set->help)
		return 0;
	if (optind == argc)
		return say_usage("bench", "an operation is missing");
	if (optind + 1 < argc)
		return say_usage("bench",
				 "one operation at a time; what is "
				 "'%s'?",
				 argv[optind + 1]);
	return 0;
}

static int find_work(const char *name, struct bench_work *work)
{
	unsigned i;

	for (i = 0; !bench_work_at(i, work); i++)
		if (!strcmp(work->name, name))
			return 0;
	return say_usage("bench", "there is no operation '%s'", name);
}

static uint64_t default_size(uint64_t available)
{
	uint64_t bytes = DEFAULT_BYTES;

	while (bytes > available / 3 && bytes > LEAST_DEFAULT_BYTES)
		bytes /= 2;
	return bytes;
}

static int choose_size(struct bench *bench, uint64_t wanted)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	uint64_t need, available = memory_available();
	char text[2][SIZE_TEXT];

	if (!wanted)
		wanted = default_size(available);
	bench->size_bytes = (wanted + page - 1) / page * page;
	need = bench_work_need(&bench->work, bench->size_bytes);
	if (need <= available)
		return 0;
	return say_fail("bench: mapping %s: only %s of memory are available",
			size_text(text[0], need),
			size_text(text[1], available));
}

/*
 * Every count to 8, then as many as tell the curve: 12, 16, 24, 32, 48...  All
 * counts of a machine with hundreds of CPUs would take hours.
 */
static void choose_threads(struct settings *set)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned last = cpus < MAX_THREADS ? cpus : MAX_THREADS;
	unsigned threads = 1, step = 1;

	if (set->nr_threads)
		return;
	while (threads < last) {
		set->threads[set->nr_threads++] = threads;
		if (threads >= 8 && !(threads & (threads - 1)))
			step = threads / 2;
		threads += step;
	}
	set->threads[set->nr_threads++] = last;
}

static int write_json(const struct bench *bench, const char *path)
{
	json_t *object = bench_json(bench);
	size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
	FILE *file = path ? fopen(path, "we") : stdout;
	int failed;

	if (!file) {
		json_decref(object);
		return say_error(errno, "writing %s", path);
	}
	failed = json_dumpf(object, file, flags);
	json_decref(object);
	if (!path) {
		putchar('\n');
		return 0;
	}
	fputc('\n', file);
	if (fclose(file) || failed)
		return say_error(errno, "writing %s", path);
	return 0;
}

static int report(const struct bench *bench, const struct settings *set)
{
	int status = 0;

	if (!set->json || set->json_path)
		bench_print(bench);
	if (set->json)
		status = write_json(bench, set->json_path);
	if (!set->plot_path)
		return status;
	if (bench_plot(bench, set->plot_path))
		return 1;
	if (!set->json || set->json_path)
		printf("plot: %s\n", set->plot_path);
	return status;
}

static int describe_machine(struct bench *bench)
{
	hwloc_topology_t topology;
	int error = machine_topology(&topology);

	if (error)
		return say_error(-error, "bench: reading the topology");
	machine_read(&bench->machine, topology);
	hwloc_topology_destroy(topology);
	return 0;
}

static int prepare(struct bench *bench, struct settings *set, const char *name)
{
	int status = find_work(name, &bench->work);

	if (status)
		return status;
	if (set->pages >= 0)
		bench->work.pages = set->pages;
	bench->runs = set->runs;
	choose_threads(set);
	status = choose_size(bench, set->size_bytes);
	if (status)
		return status;
	return describe_machine(bench);
}

int cmd_bench(int argc, char **argv)
{
	static struct settings set = { .pages = -1, .runs = 5 };
	struct bench bench = { 0 };
	int status;

	status = parse(&set, argc, argv);
	if (status)
		return status;
	if (set.help)
		return print_help();
	status = prepare(&bench, &set, argv[optind]);
	if (status)
		return status;
	interrupt_catch();
	status = bench_measure(&bench, set.threads, set.nr_threads);
	if (!status || interrupt_seen())
		status |= report(&bench, &set);
	bench_free(&bench);
	if (interrupt_seen())
		return interrupt_die();
	return status;
}
