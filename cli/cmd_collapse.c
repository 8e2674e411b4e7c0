/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask collapse: make huge pages of the small pages of a process.
 *
 * Asks only for blocks in which there are small pages: some kernels end a call
 * at the first huge page of which nothing is present.  Private memory; what
 * cannot be collapsed at the moment is left, and told.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <ktask/ops.h>

#include "cmd.h"
#include "interrupt.h"
#include "options.h"
#include "process.h"
#include "say.h"
#include "size.h"

#define DEFAULT_HUGE_BYTES (2ull << 20)

static const char usage[] =
	"usage: ktask collapse [options] PID [START-END]\n\n"
	"Make huge pages of the small pages of process PID, or of the range "
	"of\n"
	"addresses that is given as /proc/PID/maps writes it.\n\n"
	"  --all             go on where huge pages come slowly\n"
	"  --json            print one JSON object\n"
	"  --threads N       use N threads (default: 1, or what ktask tune "
	"found)\n"
	"  --help            print this\n";

struct settings {
	bool help, all, json;
	unsigned threads;
	int pid;
	struct region range;
};

struct outcome {
	uint64_t before, after, private_bytes; /* in huge pages; all */
	uint64_t wall_ns, cpu_ns;
	unsigned threads;
	unsigned refused; /* ranges in which not all could be collapsed */
	int error; /* that ended it */
	uint64_t error_pos;
};

static int parse(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "all", no_argument, option_flag, &set->all },
		{ "help", no_argument, option_flag, &set->help },
		{ "json", no_argument, option_flag, &set->json },
		{ "threads", required_argument, option_count, &set->threads },
		{ 0 },
	};
	int status = options_parse("collapse", specs, true, argc, argv);

	if (status || set->help)
		return status;
	return process_operands("collapse", argc - optind, argv + optind,
				&set->pid, &set->range);
}

static uint64_t huge_bytes(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
			   "re");
	uint64_t bytes = 0;

	if (file && fscanf(file, "%" SCNu64, &bytes) != 1)
		bytes = 0;
	if (file)
		fclose(file);
	return bytes && !(bytes & (bytes - 1)) ? bytes : DEFAULT_HUGE_BYTES;
}

static int find_regions(const struct settings *set, struct regions *regions)
{
	int error = regions_of(set->pid, REGIONS_ANON, regions);

	if (error)
		return error;
	regions_within(regions, set->range.start, set->range.end);
	return regions_small(set->pid, huge_bytes(), regions);
}

static int stop_if_interrupted(const struct ktask_progress *now, void *arg)
{
	return interrupt_seen();
}

static bool is_mapped(int pid, const struct region *region)
{
	struct regions now;
	bool mapped;

	if (regions_of(pid, REGIONS_ANON, &now))
		return true;
	regions_within(&now, region->start, region->end);
	mapped = now.nr == 1 && now.at[0].start == region->start &&
		 now.at[0].end == region->end;
	regions_free(&now);
	return mapped;
}

/* What of one range keeps no other from being tried: the process goes on. */
static bool is_local(int error, int pid, const struct region *region)
{
	return error == -EINVAL || error == -EAGAIN || error == -EBUSY ||
	       (error == -ENOMEM && !is_mapped(pid, region));
}

static void collapse(const struct settings *set, const struct region *region,
		     struct outcome *outcome)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_op_args args = {
		.addr = (void *)(uintptr_t)region->start,
		.len = region->end - region->start,
		.flags = set->all ? KTASK_COLLAPSE_ALL : 0,
		.pid = set->pid,
	};
	int error;

	opts.max_threads = set->threads;
	opts.progress_func = stop_if_interrupted;
	opts.result = &result;
	error = ktask_op_run(ktask_op_find("collapse"), &args, &opts);
	outcome->wall_ns += result.wall_ns;
	outcome->cpu_ns += result.cpu_ns;
	if (result.threads > outcome->threads)
		outcome->threads = result.threads;
	if (is_local(error, set->pid, region)) {
		outcome->refused++;
	} else if (error) {
		outcome->error = error;
		outcome->error_pos = region->start + result.fail_offset;
	}
}

static int say_failure(const struct settings *set,
		       const struct outcome *outcome)
{
	const char *why = strerror(-outcome->error);

	if (interrupt_seen())
		why = "interrupted";
	if (outcome->error == -ETIME)
		why = "memory is too fragmented, the rest keeps its small "
		      "pages (--all goes on)";
	if (outcome->error == -ENOMEM)
		why = "no huge page to be had, the rest keeps its small pages";
	return say_fail("collapsing process %d at %" PRIx64 ": %s", set->pid,
			outcome->error_pos, why);
}

static void report(const struct settings *set, const struct outcome *outcome)
{
	char text[3][SIZE_TEXT];
	json_t *object;

	if (!set->json) {
		printf("process %d: %s in huge pages, before %s, of %s of "
		       "private memory; %.3f s, %u thread%s, %.3f s of CPU\n",
		       set->pid, size_text(text[0], outcome->after),
		       size_text(text[1], outcome->before),
		       size_text(text[2], outcome->private_bytes),
		       outcome->wall_ns / 1e9, outcome->threads,
		       outcome->threads == 1 ? "" : "s", outcome->cpu_ns / 1e9);
		if (outcome->refused)
			printf("%u range%s could not be collapsed as a whole\n",
			       outcome->refused,
			       outcome->refused == 1 ? "" : "s");
		return;
	}
	object = json_pack(
		"{s:i, s:I, s:I, s:I, s:i, s:f, s:f, s:i, s:b}", "pid",
		set->pid, "huge_bytes", (json_int_t)outcome->after,
		"huge_bytes_before", (json_int_t)outcome->before,
		"private_bytes", (json_int_t)outcome->private_bytes,
		"refused_ranges", (int)outcome->refused, "seconds",
		outcome->wall_ns / 1e9, "cpu_seconds", outcome->cpu_ns / 1e9,
		"threads", (int)outcome->threads, "fragmented",
		outcome->error == -ETIME);
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
}

static void stop_at(struct outcome *outcome, uint64_t pos)
{
	outcome->error = -ECANCELED;
	outcome->error_pos = pos;
}

static int run(const struct settings *set)
{
	struct outcome outcome = { 0 };
	struct regions regions;
	int error = find_regions(set, &regions);

	if (error)
		return say_error(-error, "looking at process %d", set->pid);
	error = process_huge(set->pid, &outcome.before, &outcome.private_bytes);
	interrupt_catch();
	for (size_t i = 0; i < regions.nr && !outcome.error; i++) {
		collapse(set, &regions.at[i], &outcome);
		/* A range that is done at once asks nobody. */
		if (interrupt_seen() && !outcome.error)
			stop_at(&outcome, regions.at[i].end);
	}
	regions_free(&regions);
	if (!error)
		error = process_huge(set->pid, &outcome.after,
				     &outcome.private_bytes);
	if (error && !outcome.error)
		return say_error(-error, "looking at process %d", set->pid);
	if (!error)
		report(set, &outcome);
	return outcome.error ? say_failure(set, &outcome) : 0;
}

int cmd_collapse(int argc, char **argv)
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
