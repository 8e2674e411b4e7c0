/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bench-neighbour: what jobs with helpers do to others, what others do to
 * them, and whether they find the right number of threads.
 *
 * Owns the options and the order of the parts.  Wants an otherwise idle
 * machine: it does not wait for one, but says how busy others were.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/machine.h"
#include "bench/common/others.h"
#include "parts.h"
#include "table.h"
#include "work.h"

static const char usage[] =
	"usage: bench-neighbour [options]\n\n"
	"  --size MIB     memory to populate (default 256; times 4 in count)\n"
	"  --window MS    throughput is counted in so long (default 1000)\n"
	"  --work MS      of one thread, in a computing job (default 1000)\n"
	"  --rounds N     rounds that count (default 7)\n"
	"  --only PART    full, half, count, react, permits\n"
	"  --job WORD     in count: only jobs with that word in their name\n"
	"  --load WORD    in full: only neighbours of that kind, cpu or memory\n"
	"  --output FILE  write JSON there as well\n"
	"  --json         print JSON and no table\n";

struct flags {
	const char *only;
	const char *output;
	bool json;
};

static const struct option options[] = {
	{ "size", required_argument, NULL, 's' },
	{ "window", required_argument, NULL, 'w' },
	{ "work", required_argument, NULL, 'k' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "only", required_argument, NULL, 'o' },
	{ "job", required_argument, NULL, 'b' },
	{ "load", required_argument, NULL, 'l' },
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
	fprintf(stderr, "ktask: measuring a good neighbour: %s\n%s", what,
		usage);
	return 2;
}

static const struct {
	const char *name;
	int (*run)(const struct settings *set);
} parts[] = {
	{ "full", full_run },		{ "half", half_run },
	{ "count", count_run },		{ "react", react_run },
	{ "permits", permit_cost_run },
};

#define NR_PARTS (sizeof(parts) / sizeof(*parts))

static bool known_part(const char *name)
{
	for (size_t i = 0; i < NR_PARTS; i++)
		if (!strcmp(parts[i].name, name))
			return true;
	return false;
}

/* Return: 0 to go on, otherwise the exit status plus one. */
static int parse_options(struct settings *set, struct flags *flags, int argc,
			 char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			set->size_bytes = parse_number(optarg, 1ul << 24) << 20;
		else if (option == 'w')
			set->window_ns = parse_number(optarg, 100000) * 1000000;
		else if (option == 'k')
			set->work_seconds =
				(double)parse_number(optarg, 100000) / 1e3;
		else if (option == 'r')
			set->rounds = (unsigned)parse_number(optarg, 1000);
		else if (option == 'o')
			flags->only = optarg;
		else if (option == 'b')
			set->only_job = optarg;
		else if (option == 'l')
			set->only_load = optarg;
		else if (option == 'f')
			flags->output = optarg;
		else if (option == 'j')
			flags->json = true;
		else if (option == 'h')
			return fputs(usage, stdout) < 0 ? 2 : 1;
		else
			return 1 + usage_error("unknown option");
	}
	if (optind < argc || set->size_bytes < 2ul << 20 || !set->window_ns ||
	    !set->rounds || set->work_seconds <= 0 ||
	    (flags->only && !known_part(flags->only)))
		return 1 + usage_error("wrong value");
	return 0;
}

static unsigned own_cpus(void)
{
	cpu_set_t own;

	if (sched_getaffinity(0, sizeof(own), &own))
		return 1;
	return (unsigned)CPU_COUNT(&own);
}

static int run_parts(const struct settings *set, const struct flags *flags)
{
	int error = works_init(set->size_bytes, set->work_seconds);

	for (size_t i = 0; i < NR_PARTS && !error; i++)
		if (!flags->only || !strcmp(flags->only, parts[i].name))
			error = parts[i].run(set);
	works_exit();
	return error;
}

static int write_json(const struct settings *set, double others,
		      const char *path)
{
	json_t *object =
		json_pack("{s:s s:o s:I s:i s:f s:O}", "benchmark", "neighbour",
			  "machine", machine_json(), "size_bytes",
			  (json_int_t)set->size_bytes, "rounds", set->rounds,
			  "others_cpus", others, "tables", tables_json());
	FILE *file = path ? fopen(path, "w") : stdout;
	int failed;

	if (!file || !object) {
		failed = errno ? errno : ENOMEM;
		json_decref(object);
		return failed;
	}
	failed = json_dumpf(object, file,
			    JSON_INDENT(2) | JSON_REAL_PRECISION(6)) ||
		 fputc('\n', file) < 0;
	if (file != stdout && fclose(file))
		failed = 1;
	json_decref(object);
	return failed ? EIO : 0;
}

static int report_tables(const struct settings *set, const struct flags *flags,
			 double others)
{
	int error = 0;

	if (!flags->json) {
		machine_print();
		printf("%zu MiB to populate, %u rounds after one that does not "
		       "count\nother processes kept %.2f CPUs busy meanwhile\n",
		       set->size_bytes >> 20, set->rounds, others);
		tables_print();
	} else {
		error = write_json(set, others, NULL);
	}
	if (!error && flags->output)
		error = write_json(set, others, flags->output);
	return error;
}

int main(int argc, char **argv)
{
	struct settings set = {
		.cpus = own_cpus(),
		.rounds = 7,
		.size_bytes = (size_t)256 << 20,
		.window_ns = 1000000000,
		.work_seconds = 1,
	};
	struct flags flags = { 0 };
	int status = parse_options(&set, &flags, argc, argv), error;
	struct others before = others_now();

	if (status)
		return status - 1;
	/* Nothing that is learnt of operations comes in or out. */
	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	error = run_parts(&set, &flags);
	if (!error)
		error = report_tables(&set, &flags, others_cpus(&before));
	if (error)
		fprintf(stderr, "ktask: measuring a good neighbour: %s\n",
			strerror(error));
	tables_free();
	return error ? 1 : 0;
}
