/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask warm: read files into the page cache, many or a large one.
 *
 * `ktask populate` maps one file and makes its pages, also of tmpfs and
 * hugetlbfs; this reads, which takes no memory but the cache's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "cli/ui/command_options.h"
#include "cli/ui/interrupt.h"
#include "cli/ui/message.h"
#include "cli/ui/progress.h"
#include "cli/ui/text.h"
#include "walk_files.h"

/* clang-format off */
static const char usage_text[] =
"usage: ktask warm [options] PATH...\n\n"
"Read files into the page cache.\n\n"
"  --direct          read past the page cache (O_DIRECT), to warm only\n"
"                    what is below it: the cache of a host, or storage\n"
"                    on a network\n"
"  --json            print one JSON object\n"
"  --recursive       read the files in directories, too\n"
"  --threads N       use N threads at most (default: see ktask topo)\n"
"  --help            print this\n";
/* clang-format on */

struct settings {
	bool direct, json, recursive;
	unsigned threads; /* 0: the engine decides */
};

static int parse_settings(struct settings *set, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "direct", no_argument, option_flag, &set->direct },
		{ "json", no_argument, option_flag, &set->json },
		{ "recursive", no_argument, option_flag, &set->recursive },
		{ "threads", required_argument, option_count, &set->threads },
		{ 0 },
	};
	int status = options_parse("warm", usage_text, specs, true, argc, argv);

	if (!status && optind == argc)
		return say_usage("warm", "a path is missing");
	return status;
}

static void report_file(struct walk *walk, const struct ktask_file *file)
{
	if (file->fail_offset > file->offset)
		say_error(-file->error, "warming '%s' at offset %" PRIu64,
			  file->path, file->fail_offset);
	else
		say_error(-file->error, "warming '%s'", file->path);
	walk_fail(walk, file->path, file->fail_offset, strerror(-file->error));
}

/* It may also have come too late to stop the job. */
static bool was_interrupted(const struct ktask_result *result)
{
	return interrupt_seen() && result->error == -ECANCELED;
}

static size_t nr_done(const struct walk *walk)
{
	size_t nr = 0;

	for (size_t i = 0; i < walk->nr; i++)
		nr += !walk->files[i].error;
	return nr;
}

/* That of the whole job: it is not known which files have been read.  An error from before the
 * job counts as that of a position, but no file has it. */
static bool is_of_no_file(const struct walk *walk,
			  const struct ktask_result *result)
{
	return result->error &&
	       (!result->fail_error || nr_done(walk) == walk->nr);
}

/* Return: 0; 1 after messages. */
static int warm_files(struct walk *walk, const struct settings *set,
		      struct ktask_result *result)
{
	struct ktask_op_args args = {
		.struct_size = sizeof(args),
		.files = walk->files,
		.nr_files = walk->nr,
		.flags = set->direct ? KTASK_FILE_DIRECT : 0,
	};
	int error;

	interrupt_catch();
	error = progress_run("warming", "warm", &args, set->threads, result);
	/* Nothing is written there if the result itself was refused. */
	result->error = error;
	for (size_t i = 0; i < walk->nr; i++)
		if (walk->files[i].error)
			report_file(walk, &walk->files[i]);
	if (was_interrupted(result))
		return say_fail("warming: interrupted");
	if (is_of_no_file(walk, result)) {
		say_error(-error, "warming");
		walk_fail(walk, NULL, 0, strerror(-error));
	}
	return json_array_size(walk->failures) > 0;
}

/* A line of zeros says nothing that the messages do not. */
static bool is_anything_done(const struct walk *walk,
			     const struct ktask_result *result)
{
	return is_of_no_file(walk, result) ? result->units : nr_done(walk);
}

static int write_result(const struct walk *walk,
			const struct ktask_result *result)
{
	json_t *files = is_of_no_file(walk, result)
				? json_null()
				: json_integer((json_int_t)nr_done(walk));

	return json_write(
		json_pack("{s:o, s:I, s:f, s:f, s:i, s:b, s:O}", "files", files,
			  "bytes", (json_int_t)result->units, "seconds",
			  result->wall_ns / 1e9, "cpu_seconds",
			  result->cpu_ns / 1e9, "threads", (int)result->threads,
			  "interrupted", was_interrupted(result), "errors",
			  walk->failures),
		NULL);
}

static int report_result(const struct walk *walk,
			 const struct ktask_result *result, bool json)
{
	char text[PROGRESS_TEXT];
	size_t nr = nr_done(walk);

	if (json)
		return write_result(walk, result);
	progress_result(text, result, result->units);
	if (is_of_no_file(walk, result))
		printf("so far: %s\n", text);
	else
		printf("%zu file%s: %s\n", nr, plural_suffix(nr), text);
	return 0;
}

int cmd_warm(int argc, char **argv)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct walk walk = { 0 };
	struct settings set = { 0 };
	int status = parse_settings(&set, argc, argv);

	if (status)
		return status;
	walk.recursive = set.recursive;
	walk.failures = json_array();
	for (; optind < argc; optind++)
		if (walk_add(&walk, argv[optind]))
			return 1;
	status = warm_files(&walk, &set, &result);
	if (!status || set.json || is_anything_done(&walk, &result))
		status |= report_result(&walk, &result, set.json);
	return interrupt_seen() ? interrupt_die() : status;
}
