/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask tune: measure with how many threads, and which chunks, an operation is
 * fastest here, and let all later jobs begin with that.
 *
 * This file owns the options, the way through the operations, and writing down
 * what was found; tune_measure.c measures.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "cli/ui/interrupt.h"
#include "cli/ui/command_options.h"
#include "cli/ui/message.h"
#include "cli/ui/text.h"
#include "cli/ui/size.h"
#include "cli/bench/system_load.h"
#include "cli/bench/tune_command.h"
#include "util/least_limit.h"

#define DEFAULT_BYTES (1ull << 30)

static const char usage_text[] =
	"usage: ktask tune [options] [OPERATION]\n\n"
	"Measure with how many threads OPERATION is fastest on this machine,\n"
	"and keep it: later jobs begin with that.  Without OPERATION all are\n"
	"measured.  Run it while the machine is idle: else nothing is kept.\n\n"
	"  --size SIZE       memory to work on, as 512M or 8G (default: 1G where\n"
	"                    that is a third of the available memory, else less)\n"
	"  --runs N          counted runs of each thread count (default: 5)\n"
	"  --threads N       N threads at most (default: see ktask topo)\n"
	"  --json[=FILE]     print one JSON object instead of the tables, or\n"
	"                    write it to FILE beside them\n"
	"  --plot FILE       draw the speedup into FILE (.svg or .png)\n"
	"  --force           keep what is found also where other processes were busy\n"
	"                    meanwhile\n"
	"  --dry-run         show what is found, and keep nothing\n"
	"  --help            print this\n\n"
	"Operations:\n";

struct settings {
	bool dry_run;
	bool force;
	struct option_file json;
	const char *plot_path;
	unsigned runs;
	unsigned threads; /* 0: as many as policy allows */
	uint64_t size_bytes; /* 0: default */
	const char *operation; /* NULL: all */
};

static void list_operations(void)
{
	const struct ktask_op *op;

	for (unsigned i = 0; (op = bench_op_at(i)); i++)
		printf("  %-17s %s\n", ktask_op_name(op), ktask_op_summary(op));
}

static int parse_settings(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "dry-run", no_argument, option_flag, &set->dry_run },
		{ "force", no_argument, option_flag, &set->force },
		{ "json", optional_argument, option_file, &set->json },
		{ "plot", required_argument, option_plot, &set->plot_path },
		{ "runs", required_argument, option_count, &set->runs },
		{ "size", required_argument, option_size, &set->size_bytes },
		{ "threads", required_argument, option_count, &set->threads },
		{ 0 },
	};
	int status = options_parse("tune", usage_text, specs, true, argc, argv);

	if (status == OPTIONS_HELPED)
		list_operations();
	if (status)
		return status;
	if (optind + 1 < argc)
		return say_usage(
			"tune",
			"unexpected argument '%s' (one operation, or none for all)",
			argv[optind + 1]);
	set->operation = argv[optind];
	if (set->operation && !ktask_op_find(set->operation))
		return say_usage("tune", "there is no operation '%s'",
				 set->operation);
	if (set->plot_path && !set->operation)
		return say_usage("tune", "--plot needs an operation");
	return 0;
}

/* What policy allows, if nobody asked for less. */
static unsigned choose_threads(const struct settings *set)
{
	unsigned threads = least_limit();

	if (threads > MAX_THREADS - 1)
		threads = MAX_THREADS - 1;
	if (set->threads && set->threads < threads)
		threads = set->threads;
	return threads ? threads : 1;
}

/* If the file cannot be written the results are still printed. */
static int write_down(struct tune *tune)
{
	char path[sizeof(tune->path)];
	int error = ktask_autotune_put(&tune->best, path, sizeof(path));

	if (error)
		return say_error(-error, "tune: writing %s",
				 path[0] ? path : "what was found");
	memcpy(tune->path, path, sizeof(path));
	return 0;
}

/* Beside other work fewer threads than usual are best: later jobs must not begin
 * with that. */
static int keep_result(struct tune *tune, const struct settings *set)
{
	const struct bench *counts = &tune->counts, *chunks = &tune->chunks;
	double others = counts->others_cpus > chunks->others_cpus
				? counts->others_cpus
				: chunks->others_cpus;

	if (set->dry_run)
		return 0;
	if (set->force || (tune_load_known(tune) && tune_quiet(tune)))
		return write_down(tune);
	if (!tune_load_known(tune))
		return say_fail("tune: keeping the best of %s: how busy the "
				"machine is cannot be read (--force keeps it)",
				tune->best.name);
	return say_fail(
		"tune: keeping the best of %s: the machine was busy, "
		"other processes used %.2f of %u CPUs (--force keeps it)",
		tune->best.name, others, counts->machine.cpus);
}

static int tune_one(struct tune *tune, const struct settings *set,
		    const char *name)
{
	struct bench *bench = &tune->counts;
	int status;

	if (!bench_work_find(name, &bench->work))
		return say_fail("tune: %s cannot be measured", name);
	bench->runs = set->runs;
	bench->label = name;
	bench->unpaired = true; /* each phase has rounds of its own */
	status = bench_size(bench, "tune", set->size_bytes, DEFAULT_BYTES);
	if (!status)
		status = bench_machine(bench, "tune");
	if (!status)
		status = tune_measure(tune, choose_threads(set));
	return status ? status : keep_result(tune, set);
}

/* Results are shown even if they could not be written. */
static int show_tune(const struct tune *tune, const struct settings *set,
		     json_t *array, bool first)
{
	bool text = !set->json.given || set->json.path;

	if (text) {
		if (!first)
			putchar('\n');
		tune_print(tune);
	}
	json_array_append_new(array, tune_json(tune));
	if (!set->plot_path)
		return 0;
	if (bench_plot(&tune->counts, set->plot_path))
		return 1;
	if (text)
		printf("plot: %s\n", set->plot_path);
	return 0;
}

static int tune_all(const struct settings *set, json_t *array)
{
	const char *name = set->operation;
	int status = 0;

	for (unsigned i = 0; !interrupt_seen(); i++) {
		struct tune tune = { 0 };

		if (!set->operation)
			name = ktask_op_name(bench_op_at(i));
		if (!name || (set->operation && i))
			break;
		status |= tune_one(&tune, set, name);
		if (tune.best.threads && !interrupt_seen())
			status |= show_tune(&tune, set, array,
					    json_array_size(array) == 0);
		tune_free(&tune);
	}
	return status;
}

/* Before measuring, which takes minutes. */
static int verify_targets(const struct settings *set)
{
	char path[sizeof(((struct tune *)NULL)->path)];
	int error =
		set->dry_run ? 0 : ktask_autotune_verify(path, sizeof(path));

	if (!set->dry_run && !set->force && busy_now().unknown)
		return say_fail(
			"tune: keeping what is found: how busy the machine is "
			"cannot be read (--force keeps it, --dry-run only "
			"shows it)");
	if (error)
		return say_error(
			-error,
			"tune: writing %s (--dry-run only shows what is found)",
			path[0] ? path : "what is found");
	return bench_verify_targets(set->json.path, set->plot_path);
}

int cmd_tune(int argc, char **argv)
{
	struct settings set = { .runs = 5 };
	json_t *array;
	int status = parse_settings(&set, argc, argv);

	if (status)
		return status;
	status = verify_targets(&set);
	if (status)
		return status;
	interrupt_catch();
	array = json_array();
	status = tune_all(&set, array);
	if (set.json.given && json_array_size(array))
		status |= json_write(json_pack("{s:O}", "operations", array),
				     set.json.path);
	json_decref(array);
	if (interrupt_seen())
		return interrupt_die();
	return status;
}
