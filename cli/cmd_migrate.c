/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask migrate: move the memory of a process to other nodes.
 *
 * As migratepages(8) does by one call and one thread.  Policies of the process
 * stay as they are: what it allocates later lies where they say.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <ktask/ops.h>

#include "cmd.h"
#include "interrupt.h"
#include "options.h"
#include "process.h"
#include "say.h"
#include "size.h"

static const char usage[] =
	"usage: ktask migrate [options] --to NODES PID [START-END]\n\n"
	"Move the memory of process PID, or of the range of addresses that is\n"
	"given as /proc/PID/maps writes it, to NODES: 1 or 0,2-3.\n\n"
	"  --to NODES        where to; pages that lie on one of them stay\n"
	"  --shared          also pages that other processes use\n"
	"  --json            print one JSON object\n"
	"  --threads N       use N threads at most (default: see ktask topo)\n"
	"  --help            print this\n";

struct settings {
	bool help, shared, json;
	uint64_t nodes;
	unsigned threads;
	int pid;
	struct region range;
};

struct outcome {
	uint64_t before[PROCESS_NODES], after[PROCESS_NODES];
	uint64_t wall_ns, cpu_ns;
	unsigned threads;
	unsigned stayed; /* mappings with pages that could not be moved */
	int stayed_error; /* of the first such page */
	int error; /* that ended it */
	uint64_t error_pos;
};

/* "1", "0,2-3" */
static const char *option_nodes(const char *text, void *to)
{
	static const char wrong[] = "not a list of nodes";
	uint64_t *nodes = to;

	*nodes = 0;
	do {
		unsigned long first, last;
		char *end;

		if (!isdigit((unsigned char)*text))
			return wrong;
		first = last = strtoul(text, &end, 10);
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return wrong;
			last = strtoul(end + 1, &end, 10);
		}
		if (first > last || last >= PROCESS_NODES ||
		    (*end && *end != ','))
			return wrong;
		while (first <= last)
			*nodes |= 1ull << first++;
		text = end + 1;
		if (!*end)
			return NULL;
	} while (true);
}

static int parse(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "help", no_argument, option_flag, &set->help },
		{ "json", no_argument, option_flag, &set->json },
		{ "shared", no_argument, option_flag, &set->shared },
		{ "threads", required_argument, option_count, &set->threads },
		{ "to", required_argument, option_nodes, &set->nodes },
		{ 0 },
	};
	int status = options_parse("migrate", specs, true, argc, argv);

	if (status || set->help)
		return status;
	if (!set->nodes)
		return say_usage("migrate", "--to is missing");
	return process_operands("migrate", argc - optind, argv + optind,
				&set->pid, &set->range);
}

static int stop_if_interrupted(const struct ktask_progress *now, void *arg)
{
	return interrupt_seen();
}

static void note_error(struct outcome *outcome, int error, uint64_t pos,
		       uint64_t bytes_done)
{
	/* The mapping is gone: there is nothing to move. */
	if (error == -EFAULT)
		return;
	if (error == -EBUSY || (error == -EACCES && bytes_done)) {
		if (!outcome->stayed++)
			outcome->stayed_error = error;
		return;
	}
	outcome->error = error;
	outcome->error_pos = pos;
}

static void migrate(const struct settings *set, const struct region *region,
		    struct outcome *outcome)
{
	unsigned long nodes[1] = { (unsigned long)set->nodes };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_op_args args = {
		.addr = (void *)(uintptr_t)region->start,
		.len = region->end - region->start,
		.flags = set->shared ? KTASK_MIGRATE_SHARED : 0,
		.pid = set->pid,
		.src = nodes,
		.src_len = 8 * sizeof(nodes),
	};
	int error;

	opts.max_threads = set->threads;
	opts.progress_func = stop_if_interrupted;
	opts.result = &result;
	error = ktask_op_run(ktask_op_find("migrate"), &args, &opts);
	outcome->wall_ns += result.wall_ns;
	outcome->cpu_ns += result.cpu_ns;
	if (result.threads > outcome->threads)
		outcome->threads = result.threads;
	if (error)
		note_error(outcome, error, region->start + result.fail_offset,
			   result.units);
}

static void report_json(const struct settings *set,
			const struct outcome *outcome)
{
	json_t *nodes = json_array(), *object;

	for (int node = 0; node < PROCESS_NODES; node++)
		if (outcome->before[node] || outcome->after[node])
			json_array_append_new(
				nodes,
				json_pack("{s:i, s:I, s:I}", "node", node,
					  "bytes_before",
					  (json_int_t)outcome->before[node],
					  "bytes",
					  (json_int_t)outcome->after[node]));
	object = json_pack(
		"{s:i, s:o, s:i, s:f, s:f, s:i}", "pid", set->pid, "nodes",
		nodes, "mappings_with_rest", (int)outcome->stayed, "seconds",
		outcome->wall_ns / 1e9, "cpu_seconds", outcome->cpu_ns / 1e9,
		"threads", (int)outcome->threads);
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
}

static void report(const struct settings *set, const struct outcome *outcome)
{
	char text[2][SIZE_TEXT];

	printf("process %d: %.3f s, %u thread%s, %.3f s of CPU\n", set->pid,
	       outcome->wall_ns / 1e9, outcome->threads,
	       outcome->threads == 1 ? "" : "s", outcome->cpu_ns / 1e9);
	for (int node = 0; node < PROCESS_NODES; node++)
		if (outcome->before[node] || outcome->after[node])
			printf("  node %d: %s, before %s\n", node,
			       size_text(text[0], outcome->after[node]),
			       size_text(text[1], outcome->before[node]));
	if (outcome->stayed)
		printf("pages of %u mapping%s stayed: %s\n", outcome->stayed,
		       outcome->stayed == 1 ? "" : "s",
		       outcome->stayed_error == -EACCES
			       ? "other processes use them (--shared)"
			       : strerror(-outcome->stayed_error));
}

static int say_failure(const struct settings *set,
		       const struct outcome *outcome)
{
	const char *why = strerror(-outcome->error);

	if (interrupt_seen())
		return say_fail("migrating process %d: interrupted", set->pid);
	if (outcome->error == -ENODEV)
		why = "a node of --to is not there, or has no memory (see "
		      "'ktask topo')";
	return say_fail("migrating process %d at %" PRIx64 ": %s", set->pid,
			outcome->error_pos, why);
}

static int run(const struct settings *set)
{
	struct outcome outcome = { 0 };
	struct regions regions;
	int error = regions_of(set->pid, 0, &regions);

	if (!error)
		error = process_nodes(set->pid, outcome.before);
	if (error)
		return say_error(-error, "looking at process %d", set->pid);
	regions_within(&regions, set->range.start, set->range.end);
	interrupt_catch();
	for (size_t i = 0; i < regions.nr && !outcome.error; i++) {
		migrate(set, &regions.at[i], &outcome);
		/* A mapping that is done at once asks nobody. */
		if (interrupt_seen() && !outcome.error)
			outcome.error = -ECANCELED;
	}
	regions_free(&regions);
	if (outcome.error)
		return say_failure(set, &outcome);
	process_nodes(set->pid, outcome.after);
	if (set->json)
		report_json(set, &outcome);
	else
		report(set, &outcome);
	return 0;
}

int cmd_migrate(int argc, char **argv)
{
	struct settings set = { 0 };
	int status = parse(&set, argc, argv);

	if (status)
		return status;
	if (set.help) {
		fputs(usage, stdout);
		return 0;
	}
	status = run(&set);
	return interrupt_seen() ? interrupt_die() : status;
}
