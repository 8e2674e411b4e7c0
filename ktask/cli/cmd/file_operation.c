/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An operation on many files: see file_operation.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/ui/bar.h"
#include "failures.h"
#include "file_operation.h"
#include "cli/ui/interrupt.h"
#include "cli/ui/progress.h"
#include "cli/ui/message.h"
#include "walk.h"

struct ktask_file *files_add(struct files *files)
{
	struct ktask_file *at;

	/* Doubled at each power of two. */
	if (!(files->nr & (files->nr - 1))) {
		size_t capacity = files->nr ? 2 * files->nr : 1;

		at = realloc(files->at, capacity * sizeof(*at));
		if (!at) {
			say_error(ENOMEM, "%s: listing files", files->command);
			return NULL;
		}
		files->at = at;
	}
	at = &files->at[files->nr++];
	*at = (struct ktask_file){ .fd = -1, .len = KTASK_TO_END };
	return at;
}

/* Below a directory only files count; a path that is named must be a file. */
static bool is_wanted(struct files *files, const struct walk_entry *entry,
		      bool directories)
{
	const char *why = "not a regular file";

	if (entry->type == WALK_FILE)
		return true;
	if (entry->type == WALK_DIRECTORY && (directories || files->recursive))
		return directories;
	if (strlen(entry->path) > entry->root_len)
		return false;
	if (entry->type == WALK_DIRECTORY)
		why = "is a directory (--recursive goes through it)";
	say_fail("%s %s: %s", files->doing, entry->path, why);
	failures_add(files->failures, entry->path, 0, why);
	return false;
}

int files_find(struct files *files, char **paths, int nr, bool directories)
{
	struct walk walk = { .recursive = files->recursive,
			     .command = files->command };

	walk.failures = files->failures = json_array();
	if (!files->failures)
		return say_error(ENOMEM, "%s: listing files", files->command);
	for (int i = 0; i < nr; i++)
		if (walk_add(&walk, paths[i]))
			return 1;
	for (size_t i = 0; i < walk.nr; i++) {
		struct ktask_file *file;

		if (!is_wanted(files, &walk.entries[i], directories))
			continue;
		file = files_add(files);
		if (!file)
			return 1;
		file->path = walk.entries[i].path;
		file->nofollow = walk_found(&walk.entries[i]);
	}
	return 0;
}

static void report_file(const struct files *files,
			const struct ktask_file *file)
{
	if (file->fail_offset > file->offset)
		say_error(-file->error, "%s %s at offset %" PRIu64,
			  files->doing, file->path, file->fail_offset);
	else
		say_error(-file->error, "%s %s", files->doing, file->path);
	failures_add(files->failures, file->path, file->fail_offset,
		     strerror(-file->error));
}

int files_run(struct files *files, struct ktask_result *result)
{
	struct ktask_op_args args = { .files = files->at,
				      .nr_files = files->nr,
				      .flags = files->flags };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct bar bar;
	int error;

	bar_init(&bar, files->doing);
	opts.max_threads = files->threads;
	opts.progress_func = progress_bar;
	opts.progress_arg = &bar;
	opts.progress_ms = BAR_REDRAW_MS;
	opts.result = result;
	interrupt_catch();
	error = ktask_op_run(ktask_op_find(files->op), &args, &opts);
	bar_clear(&bar);
	if (interrupt_seen())
		return say_fail("%s: interrupted", files->doing);
	for (size_t i = 0; i < files->nr; i++)
		if (files->at[i].error)
			report_file(files, &files->at[i]);
	/* What no file says, the job as a whole does. */
	if (error && !json_array_size(files->failures)) {
		say_error(-error, "%s", files->doing);
		failures_add(files->failures, NULL, 0, strerror(-error));
	}
	return json_array_size(files->failures) > 0;
}

static size_t nr_done(const struct files *files)
{
	size_t nr = 0;

	for (size_t i = 0; i < files->nr; i++)
		nr += !files->at[i].error;
	return nr;
}

void files_report(const struct files *files, const struct ktask_result *result)
{
	char text[PROGRESS_TEXT];
	size_t nr = nr_done(files);
	json_t *object;

	if (!files->json) {
		printf("%zu file%s: %s\n", nr, nr == 1 ? "" : "s",
		       progress_result(text, result, result->units));
		return;
	}
	object = json_pack("{s:I, s:I, s:f, s:f, s:i, s:O}", "files",
			   (json_int_t)nr, "bytes", (json_int_t)result->units,
			   "seconds", result->wall_ns / 1e9, "cpu_seconds",
			   result->cpu_ns / 1e9, "threads",
			   (int)result->threads, "errors", files->failures);
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
}

int files_command(struct files *files, const char *usage, bool directories,
		  int nr, char **paths)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	int status;

	if (files->help) {
		fputs(usage, stdout);
		return 0;
	}
	if (!nr)
		return say_usage(files->command, "a path is missing");
	if (files_find(files, paths, nr, directories))
		return 1;
	status = files_run(files, &result);
	if (interrupt_seen())
		return interrupt_die();
	files_report(files, &result);
	return status;
}
