/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask populate: make every page of a file, or of memory, present.
 *
 * A file keeps its pages afterwards (page cache, tmpfs, hugetlbfs); memory
 * (--anon) is given back at once, which warms a virtual machine's memory in
 * its host, and measures.  What can be warmed, and how, is in warm_target.c.
 */
#include <stdbool.h>
#include <stdio.h>

#include <ktask/ops.h>

#include "cmd.h"
#include "cli/ui/interrupt.h"
#include "cli/ui/command_options.h"
#include "cli/ui/progress.h"
#include "cli/ui/message.h"
#include "cli/ui/size.h"
#include "warm_target.h"
#include "util/memory.h"

static const char usage_text[] =
	"usage: ktask populate [options] PATH\n"
	"       ktask populate [options] --anon SIZE\n\n"
	"Make every page of the file PATH present: read an ordinary file into\n"
	"the page cache, allocate the pages of a tmpfs or hugetlbfs file.\n\n"
	"  --allocate SIZE   create PATH, or make it longer, to have SIZE\n"
	"  --anon SIZE       populate memory of this process instead of a file\n"
	"  --threads N       use N threads at most (default: see ktask topo)\n"
	"  --help            print this\n";

struct settings {
	uint64_t allocate_bytes; /* 0: leave the file's length alone */
	uint64_t anon_bytes; /* 0: a file */
	unsigned threads; /* 0: the engine decides */
	const char *path; /* NULL: memory */
};

static int check_settings(struct settings *set, int nr_paths, char **paths)
{
	if (!nr_paths && !set->anon_bytes)
		return say_usage("populate", "a path or --anon is missing");
	if (nr_paths > (set->anon_bytes ? 0 : 1))
		return say_usage(
			"populate",
			"unexpected argument '%s' (one PATH, or --anon)",
			paths[nr_paths - 1]);
	if (set->anon_bytes && set->allocate_bytes)
		return say_usage(
			"populate",
			"--allocate makes a file longer: it needs a PATH");
	set->path = nr_paths ? paths[0] : NULL;
	return 0;
}

static int parse_settings(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "allocate", required_argument, option_size,
		  &set->allocate_bytes },
		{ "anon", required_argument, option_size, &set->anon_bytes },
		{ "threads", required_argument, option_count, &set->threads },
		{ 0 },
	};
	int status =
		options_parse("populate", usage_text, specs, true, argc, argv);

	if (status)
		return status;
	return check_settings(set, argc - optind, argv + optind);
}

static int open_warm(struct warm *warm, const struct settings *set)
{
	uint64_t available = memory_available();
	char text[2][SIZE_TEXT];

	if (set->path)
		return warm_open_file(warm, set->path, set->allocate_bytes);
	if (set->anon_bytes > available)
		return say_fail("mapping %s: only %s of memory are available",
				size_text(text[0], set->anon_bytes),
				size_text(text[1], available));
	return warm_open_memory(warm, set->anon_bytes);
}

static int say_failure(const struct warm *warm, const char *name, int error,
		       const struct ktask_result *result)
{
	char why[160], offset[SIZE_TEXT];

	if (interrupt_seen())
		return say_fail("populating %s: interrupted after %s", name,
				size_text(offset, result->units));
	if (result->fail_error)
		return say_fail("populating %s at offset %zu (%s): %s", name,
				result->fail_offset,
				size_text(offset, result->fail_offset),
				warm_why(warm, error, why));
	return say_fail("populating %s: %s", name, warm_why(warm, error, why));
}

static int populate_target(struct warm *warm, const char *name,
			   unsigned threads)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = warm->addr,
				      .len = warm->size_bytes,
				      .flags = warm->flags };
	char text[PROGRESS_TEXT];
	int error = progress_run(name, "populate", &args, threads, &result);

	if (error) {
		say_failure(warm, name, error, &result);
		warm_undo(warm);
		return 1;
	}
	printf("%s: %s\n", name,
	       progress_result(text, &result, warm->size_bytes));
	return 0;
}

int cmd_populate(int argc, char **argv)
{
	struct settings set = { 0 };
	struct warm warm;
	int status = parse_settings(&set, argc, argv);

	if (status)
		return status;
	status = open_warm(&warm, &set);
	if (status)
		return status;
	interrupt_catch();
	status = populate_target(&warm, set.path ? set.path : "memory",
				 set.threads);
	warm_close(&warm);
	if (interrupt_seen() && status)
		return interrupt_die();
	return status;
}
