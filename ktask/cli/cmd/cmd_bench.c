/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask bench: how much faster is an operation with more threads, or one
 * command than another?
 *
 * This file owns the options and their defaults; bench_rounds.c measures,
 * bench_report.c prints.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "cmd.h"
#include "cli/ui/interrupt.h"
#include "cli/ui/command_options.h"
#include "cli/ui/message.h"
#include "cli/ui/text.h"
#include "cli/ui/size.h"

#define DEFAULT_BYTES (8ull << 30)

#define DEFAULT_PRECISION_PCT 10
#define DEFAULT_MAX_SECONDS 60
#define COMPARE "compare"
#define NR_SIDES 2

static const char usage_text[] =
	"usage: ktask bench [options] OPERATION\n"
	"       ktask bench [options] compare COMMAND COMMAND\n\n"
	"Measure how much faster OPERATION is with more threads, or how much\n"
	"faster the second shell command is than the first.  All sides run in\n"
	"each round; rounds are repeated until the ratio is known.\n\n"
	"  --threads LIST    thread counts, as 1-4 or 1,2,8 (default: 1 to the\n"
	"                    number of CPUs)\n"
	"  --size SIZE       memory to work on, as 512M or 8G (default: 8G where\n"
	"                    that is a third of the available memory, else less,\n"
	"                    and less where the time would be too short);\n"
	"                    compare: memory to touch before each run (default: none)\n"
	"  --precision PCT   go on until the interval of each speedup is at most\n"
	"                    PCT percent of it (default: 10)\n"
	"  --max-time SEC    but not longer than SEC seconds (default: 60); two rounds\n"
	"                    are run in any case, the first is not counted\n"
	"  --runs N          exactly N rounds instead\n"
	"  --pages KIND      huge, small, or default (the system's choice)\n"
	"  --names A,B       compare: what to call the commands\n"
	"  --own-time        compare: the seconds that a command prints as its last\n"
	"                    line count, not the time until it ends\n"
	"  --chart           draw the speedup below the table\n"
	"  --json[=FILE]     print one JSON object instead of the table, or write\n"
	"                    it to FILE beside the table\n"
	"  --plot FILE       draw the speedup into FILE (.svg or .png)\n"
	"  --help            print this\n\n"
	"Operations:\n";

struct settings {
	bool chart, own_time;
	struct option_file json; /* without a path: standard output */
	const char *plot_path;
	const char *names;
	int pages; /* -1: as the work has it */
	unsigned precision_pct, max_seconds; /* 0: default */
	unsigned runs; /* 0: until settled */
	uint64_t size_bytes; /* 0: default */
	struct thread_list {
		int nr; /* 0: default */
		unsigned counts[MAX_THREADS];
	} threads;
	const char *operation;
	char **commands; /* NULL: none are compared */
};

static void list_operations(void)
{
	struct bench_work work;

	for (unsigned i = 0; !bench_work_at(i, &work); i++)
		printf("  %-17s %s\n", work.name, work.summary);
}

static const char *take_pages(const char *text, void *to)
{
	static const char *const kinds[] = { [PAGES_DEFAULT] = "default",
					     [PAGES_SMALL] = "small",
					     [PAGES_HUGE] = "huge" };

	for (int i = PAGES_DEFAULT; i <= PAGES_HUGE; i++)
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

static int check_operands(struct settings *set, int nr, char **operands)
{
	bool compare = nr && !strcmp(operands[0], COMPARE);

	if (!nr)
		return say_usage("bench", "an operation is missing");
	set->operation = operands[0];
	if (compare && nr != 1 + NR_SIDES)
		return say_usage("bench", "compare takes two commands");
	if (!compare && nr > 1)
		return say_usage(
			"bench",
			"unexpected argument '%s' (one operation at a time)",
			operands[1]);
	set->commands = compare ? operands + 1 : NULL;
	return 0;
}

/* Options that would have no effect are refused. */
static int check_options(const struct settings *set)
{
	const char *compare_only = set->names	   ? "--names"
				   : set->own_time ? "--own-time"
						   : NULL;
	const char *work_only = set->threads.nr	  ? "--threads"
				: set->pages >= 0 ? "--pages"
				: set->plot_path  ? "--plot"
						  : NULL;

	if (set->runs && (set->precision_pct || set->max_seconds))
		return say_usage("bench", "--runs fixes the number of rounds: "
					  "no --precision or --max-time");
	if (set->commands && work_only)
		return say_usage("bench", "compare takes no %s", work_only);
	if (!set->commands && compare_only)
		return say_usage("bench", "%s is for compare", compare_only);
	return 0;
}

static int parse_settings(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "chart", no_argument, option_flag, &set->chart },
		{ "json", optional_argument, option_file, &set->json },
		{ "max-time", required_argument, option_count,
		  &set->max_seconds },
		{ "names", required_argument, option_text, &set->names },
		{ "own-time", no_argument, option_flag, &set->own_time },
		{ "pages", required_argument, take_pages, &set->pages },
		{ "plot", required_argument, option_plot, &set->plot_path },
		{ "precision", required_argument, option_count,
		  &set->precision_pct },
		{ "runs", required_argument, option_count, &set->runs },
		{ "size", required_argument, option_size, &set->size_bytes },
		{ "threads", required_argument, take_threads, &set->threads },
		{ 0 },
	};
	int status =
		options_parse("bench", usage_text, specs, true, argc, argv);

	if (status == OPTIONS_HELPED)
		list_operations();
	if (status)
		return status;
	status = check_operands(set, argc - optind, argv + optind);
	return status ? status : check_options(set);
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

static bool wants_text(const struct settings *set)
{
	return !set->json.given || set->json.path;
}

static int report_bench(const struct bench *bench, const struct settings *set)
{
	int status = 0;

	if (wants_text(set))
		bench_print(bench);
	if (wants_text(set) && set->chart)
		bench_print_chart(bench);
	if (set->json.given)
		status = json_write(bench_json(bench), set->json.path);
	if (!set->plot_path)
		return status;
	if (bench_plot(bench, set->plot_path))
		return 1;
	if (wants_text(set))
		printf("plot: %s\n", set->plot_path);
	return status;
}

static int add_thread_rows(struct bench *bench, const struct thread_list *list)
{
	for (int i = 0; i < list->nr; i++)
		if (bench_add_row(bench, list->counts[i], 0))
			return say_error(ENOMEM,
					 "bench: allocating the results");
	return 0;
}

static int add_command_rows(struct bench *bench, const struct settings *set)
{
	/* Lasts as long as the rows do; there is one set of them. */
	static char names[256];
	char *comma = NULL;

	if (set->names) {
		snprintf(names, sizeof(names), "%s", set->names);
		comma = strchr(names, ',');
		if (!comma)
			return say_usage("bench", "--names '%s': not A,B",
					 set->names);
		*comma = '\0';
	}
	for (int i = 0; i < NR_SIDES; i++) {
		struct bench_row *row;

		if (bench_add_row(bench, 0, 0))
			return say_error(ENOMEM,
					 "bench: allocating the results");
		row = &bench->rows[i];
		row->command = set->commands[i];
		row->name = !comma ? row->command : i ? comma + 1 : names;
	}
	return 0;
}

static void set_limits(struct bench *bench, const struct settings *set)
{
	unsigned precision_pct =
		set->precision_pct ? set->precision_pct : DEFAULT_PRECISION_PCT;

	bench->runs = set->runs;
	bench->precision = precision_pct / 100.0;
	bench->max_seconds =
		set->max_seconds ? set->max_seconds : DEFAULT_MAX_SECONDS;
}

static int prepare_work(struct bench *bench, struct settings *set)
{
	int status;

	if (!bench_work_find(set->operation, &bench->work))
		return say_usage("bench", "there is no operation '%s'",
				 set->operation);
	if (set->pages >= 0)
		bench->work.pages = set->pages;
	choose_threads(set);
	bench->less_fits = !set->size_bytes && !set->runs;
	status = bench_size(bench, "bench", set->size_bytes, DEFAULT_BYTES);
	return status ? status : add_thread_rows(bench, &set->threads);
}

/* An interrupt shall not wait for a command: see bench_command.c. */
static int prepare_commands(struct bench *bench, const struct settings *set)
{
	bench->work = (struct bench_work){
		.name = COMPARE,
		.summary =
			set->own_time
				? "two commands, by the time that each prints"
				: "two commands, from start to end",
	};
	bench->size_bytes = set->size_bytes;
	bench->own_time = set->own_time;
	interrupt_break_calls();
	return add_command_rows(bench, set);
}

static int prepare_bench(struct bench *bench, struct settings *set)
{
	int status;

	set_limits(bench, set);
	status = set->commands ? prepare_commands(bench, set)
			       : prepare_work(bench, set);
	bench->label = bench->work.name;
	if (!status)
		status = bench_machine(bench, "bench");
	if (!status)
		status = bench_verify_targets(set->json.path, set->plot_path);
	return status;
}

int cmd_bench(int argc, char **argv)
{
	static struct settings set = { .pages = -1 };
	struct bench bench = { 0 };
	int status = parse_settings(&set, argc, argv);

	if (status)
		return status;
	interrupt_catch();
	status = prepare_bench(&bench, &set);
	if (!status) {
		if (wants_text(&set))
			bench_print_plan(&bench);
		status = bench_measure(&bench, "bench");
		if (!status || interrupt_seen())
			status |= report_bench(&bench, &set);
	}
	bench_free(&bench);
	if (interrupt_seen())
		return interrupt_die();
	return status;
}
