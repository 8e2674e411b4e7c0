/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask bench: how much faster is an operation with more threads?
 *
 * This file owns the options and their defaults; bench_rounds.c measures,
 * bench_report.c prints.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "cmd.h"
#include "interrupt.h"
#include "options.h"
#include "plot.h"
#include "say.h"
#include "size.h"

#define DEFAULT_BYTES (8ull << 30)

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

struct settings {
	bool help;
	struct option_file json; /* without a path: standard output */
	const char *plot_path;
	int pages; /* -1: as the work has it */
	unsigned runs;
	uint64_t size_bytes; /* 0: default */
	struct thread_list {
		int nr; /* 0: default */
		unsigned counts[MAX_THREADS];
	} threads;
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

static const char *take_pages(const char *text, void *to)
{
	static const char *const kinds[] = { [PAGES_DEFAULT] = "default",
					     [PAGES_SMALL] = "small",
					     [PAGES_HUGE] = "huge" };
	int i;

	for (i = PAGES_DEFAULT; i <= PAGES_HUGE; i++)
		if (!strcmp(text, kinds[i])) {
			*(int *)to = i;
			return NULL;
		}
	return "not huge, small or default";
}

static const char *take_threads(const char *text, void *to)
{
	struct thread_list *list = to;

	list->nr = list_parse(text, list->counts);
	return list->nr > 0 ? NULL : "not a list as 1-4 or 1,2,8";
}

static int parse(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "help", no_argument, option_flag, &set->help },
		{ "json", optional_argument, option_file, &set->json },
		{ "pages", required_argument, take_pages, &set->pages },
		{ "plot", required_argument, option_plot, &set->plot_path },
		{ "runs", required_argument, option_count, &set->runs },
		{ "size", required_argument, option_size, &set->size_bytes },
		{ "threads", required_argument, take_threads, &set->threads },
		{ 0 },
	};
	int status = options_parse("bench", specs, true, argc, argv);

	if (status || set->help)
		return status;
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

/*
 * Every count to 8, then as many as tell the curve: 12, 16, 24, 32, 48...  All
 * counts of a machine with hundreds of CPUs would take hours.
 */
static void choose_threads(struct settings *set)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned last = cpus < MAX_THREADS ? cpus : MAX_THREADS;
	unsigned threads = 1, step = 1;

	if (set->threads.nr)
		return;
	while (threads < last) {
		set->threads.counts[set->threads.nr++] = threads;
		if (threads >= 8 && !(threads & (threads - 1)))
			step = threads / 2;
		threads += step;
	}
	set->threads.counts[set->threads.nr++] = last;
}

static int report(const struct bench *bench, const struct settings *set)
{
	int status = 0;

	if (!set->json.given || set->json.path)
		bench_print(bench);
	if (set->json.given)
		status = bench_write_json(bench_json(bench), set->json.path);
	if (!set->plot_path)
		return status;
	if (bench_plot(bench, set->plot_path))
		return 1;
	if (!set->json.given || set->json.path)
		printf("plot: %s\n", set->plot_path);
	return status;
}

static int add_rows(struct bench *bench, const struct thread_list *list)
{
	int i;

	for (i = 0; i < list->nr; i++)
		if (bench_add_row(bench, list->counts[i], 0))
			return say_error(ENOMEM, "bench: making the rows");
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
	bench->label = bench->work.name;
	status = bench_size(bench, "bench", set->size_bytes, DEFAULT_BYTES);
	if (status)
		return status;
	return bench_machine(bench, "bench");
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
	status = add_rows(&bench, &set.threads);
	if (!status)
		status = bench_measure(&bench, "bench");
	if (!status || interrupt_seen())
		status |= report(&bench, &set);
	bench_free(&bench);
	if (interrupt_seen())
		return interrupt_die();
	return status;
}
